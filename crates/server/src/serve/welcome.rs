//! What is printed when the server is ready: its URLs and the next step, for people or as JSON.

use std::{fmt::Write as _, net::SocketAddr, path::Path};

use operations::App;
use serde_json::{Value, json};
use store::blobs::BlobLocation;

use crate::{
    commands::invocation::Invocation,
    config::Config,
    failure::Result,
    output::{self, Color},
};

/// What the server tells when it is ready.
pub(super) struct Welcome {
    url: String,
    /// Whether it serves HTTP.
    api: bool,
    smtp: Option<SocketAddr>,
    domains: Vec<String>,
    data: String,
    engine: &'static str,
    /// The code that the first sign-up needs, if it does.
    code: Option<String>,
    has_accounts: bool,
    /// The program with its options, for commands that work when pasted.
    command: String,
}

impl Welcome {
    pub(super) async fn new(
        config: &Config,
        app: &App,
        invocation: &Invocation,
        api: bool,
        smtp: Option<SocketAddr>,
    ) -> Result<Self> {
        let counts: Result<(i64, i64), store::Error> =
            app.db().system_read(async |tx| store::system::counts(tx).await).await;
        let (accounts, _) = counts?;
        let engine = app.db().engine_name();
        Ok(Self {
            url: app.settings().public_url.clone(),
            api,
            smtp,
            domains: app.settings().hosted_domains.clone(),
            data: data(config, engine),
            engine,
            code: operations::accounts::sign_up::first_account_code(app).await?,
            has_accounts: accounts > 0,
            command: command(invocation),
        })
    }

    /// For programs that start the server.
    pub(super) fn to_json(&self, config: &Config) -> Value {
        json!({
            "status": "ready", "version": env!("CARGO_PKG_VERSION"), "url": self.api.then_some(&self.url),
            "smtp": self.smtp, "hosted_domains": self.domains, "data_dir": config.data_dir, "engine": self.engine,
            "has_accounts": self.has_accounts, "sign_up_code": self.code,
        })
    }

    /// For people: where everything is, and where to go next.
    pub(super) fn text(&self) -> String {
        let (url, command) = (&self.url, &self.command);
        let title = format!("Agent Mailbox {} is ready.", env!("CARGO_PKG_VERSION"));
        let mut text = format!("{}\n\n", output::paint(&title, Color::Bold));
        if self.api {
            let _ = write!(text, "  Console  {url}/\n  API      {url}/docs (OpenAPI: {url}/openapi.json)\n");
            let _ = writeln!(text, "  MCP      {url}/mcp");
        }
        if let Some(smtp) = self.smtp {
            let _ = writeln!(text, "  Mail     {smtp} (SMTP), for addresses at {}", self.domains.join(", "));
        }
        if let Some(code) = &self.code {
            let _ = writeln!(text, "  Code     {code} (needed for the first sign-up in the console)");
        }
        let _ = write!(text, "  Data     {}\n\n", self.data);
        if !self.has_accounts {
            let console = if self.api { format!("Sign up at {url}/, or run") } else { "Run".to_owned() };
            let _ = write!(
                text,
                "Next: create an account. {console} this in another terminal. It asks for a password and \
                 prints an API key:\n\n  \
                 {command} admin account create --email you@example.com --password-stdin && \
                 {command} admin key create --workspace you@example.com\n\n"
            );
        } else if self.api {
            let _ = write!(
                text,
                "List your mailboxes:\n\n  curl -H 'x-api-key: YOUR_KEY' {url}/api/v1/mailboxes\n\n"
            );
        }
        text
    }
}

fn data(config: &Config, engine: &str) -> String {
    let blobs = match &config.blobs {
        BlobLocation::Directory(path) if path.starts_with(&config.data_dir) => String::new(),
        BlobLocation::Directory(path) => format!(", blobs in {}", path.display()),
        BlobLocation::S3(settings) => format!(", blobs in the bucket {}", settings.bucket_name()),
    };
    format!("{} ({engine}{blobs})", config.data_dir.display())
}

/// The program and its options, for a shell.
fn command(invocation: &Invocation) -> String {
    let program =
        std::env::args_os().next().map_or_else(|| "agent-mailbox".into(), |name| quoted(Path::new(&name)));
    let option = |name: &str, path: &Option<std::path::PathBuf>| {
        path.as_ref().map(|path| format!(" {name} {}", quoted(path))).unwrap_or_default()
    };
    format!(
        "{program}{}{}",
        option("--config", &invocation.config),
        option("--data-dir", &invocation.data_dir)
    )
}

/// A path, quoted for a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_paths_back_as_they_are() {
        for (path, shown) in [
            ("./target/debug/agent-mailbox", "./target/debug/agent-mailbox"),
            ("/tmp/my data", "'/tmp/my data'"),
            ("it's", r"'it'\''s'"),
            ("$(x)", "'$(x)'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(Path::new(path)), shown);
        }
    }
}
