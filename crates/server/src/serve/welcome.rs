//! The text on the terminal when the server is ready: its URLs, and the next command to type.

use std::{fmt::Write as _, net::SocketAddr, path::Path};

use operations::App;
use store::blobs::BlobLocation;

use crate::{commands::invocation::Invocation, config::Config, failure::Result};

/// The welcome text. Its commands work when pasted.
pub(super) async fn text(
    config: &Config,
    app: &App,
    invocation: &Invocation,
    api: bool,
    smtp: Option<SocketAddr>,
) -> Result<String> {
    let counts: Result<(i64, i64), store::Error> =
        app.db().system_read(async |tx| store::system::counts(tx).await).await;
    let (accounts, _) = counts?;
    let url = &app.settings().public_url;
    let mut text = format!("Agent Mailbox {} is ready.\n\n", env!("CARGO_PKG_VERSION"));
    if api {
        let _ = write!(text, "  Console  {url}/\n  API      {url}/docs (the document: {url}/openapi.json)\n");
    }
    if let Some(smtp) = smtp {
        let domains = app.settings().hosted_domains.join(", ");
        let _ = writeln!(text, "  Mail     {smtp} (SMTP), for addresses at {domains}");
    }
    if let Some(code) = operations::accounts::sign_up::first_account_code(app).await? {
        let _ = writeln!(text, "  Code     {code} (the first sign-up in the console needs it)");
    }
    let _ = write!(text, "  Data     {}\n\n", data(config, app.db().engine_name()));
    if accounts == 0 {
        let command = command(invocation);
        let _ = write!(
            text,
            "There is no account yet. This line makes one, asks for its password, and makes a key:\n\n  \
             {command} admin account create --email you@example.com --password-stdin && \
             {command} admin key create --workspace you@example.com\n\n"
        );
    } else if api {
        let _ = write!(
            text,
            "List your mailboxes:\n\n  curl -H 'x-api-key: YOUR_KEY' {url}/api/v1/mailboxes\n\n"
        );
    }
    Ok(text)
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
