//! From values to typed options: every option is read once, and mistakes are collected instead of ending the
//! reading.

mod ai;
mod embeddings;
mod payments;
mod proxies;
mod send_policy;
mod telegram;
mod telemetry;

use std::{
    net::SocketAddr,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use mail::scan::clamd::ClamdError;
use model::{Plans, sending::OutboundMode};
use store::{DatabaseLocation, PostgresLocation};
use toml::{Table, Value};
use url::Url;

use super::{
    layers::{Entry, Layers, Sources, is_limit},
    locations,
    options::Config,
    problem::Problem,
    sections::{Http, Inbound, Log, Outbound, Smtp, TlsFiles},
};

/// Reads options and collects their mistakes.
pub(super) struct Reader<'a> {
    entries: &'a [Entry],
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(layers: &'a Layers) -> Self {
        Self { entries: &layers.entries, problems: layers.problems.clone() }
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// All options, unless one without a usable default is wrong.
    pub(super) fn config(&mut self, sources: &Sources) -> Option<Config> {
        let data_dir = self.data_dir(sources);
        let hosted_domains = self.hosted_domains();
        let open_sign_up = self.choice("sign_up", &["open", "invite"]) == "open";
        let sign_up_verify = self.flag("sign_up_verify");
        let operator_plan = self.parsed("operator.plan", str::parse);
        let http = self.http();
        let console = self.console();
        let smtp = self.smtp(sources);
        let inbound = self.inbound(sources);
        let database = self.database(&data_dir);
        let blobs = self.parsed("blobs.url", |url| locations::blobs(url, &data_dir, sources));
        let master_key = self.parsed("vault.master_key", |text| locations::master_key(text, &data_dir));
        let outbound = self.outbound();
        if sign_up_verify && outbound.mode == OutboundMode::Local {
            self.complain("sign_up_verify", "needs an outbound.mode that reaches other servers");
        }
        let send_policy = self.send_policy();
        let domains_spf = self.optional("domains.spf", spf_terms);
        let webhooks_allow_private = self.flag("webhooks.allow_private");
        let ai = self.ai();
        let embeddings = self.embeddings();
        let payments = self.payments();
        let telegram = self.telegram();
        let grace_days = self.number("mailboxes.grace_days", 0..=3650);
        let affiliate_percent = self.number("affiliate.percent", 0..=100);
        let currency = self.parsed("affiliate.currency", currency);
        let log = self.log();
        let telemetry = self.telemetry();
        let plans = self.plans();
        Some(Config {
            hosted_domains,
            open_sign_up,
            sign_up_verify,
            operator_plan: operator_plan?,
            http: http?,
            console,
            smtp: smtp?,
            inbound,
            database: database?,
            blobs: blobs?,
            master_key: master_key?,
            outbound,
            send_policy,
            domains_spf,
            webhooks_allow_private,
            ai,
            embeddings: embeddings?,
            payments: payments?,
            telegram,
            grace_days,
            affiliate_percent,
            currency: currency?,
            log: log?,
            telemetry,
            plans: plans?,
            data_dir,
        })
    }

    fn database(&mut self, data_dir: &Path) -> Option<DatabaseLocation> {
        let location = self.parsed("database.url", |url| locations::database(url, data_dir));
        let listen_url = self.optional("database.listen_url", locations::postgres_url);
        let pool = self.number("database.pool", 2..=1000);
        let prepared_statements = self.flag("database.prepared_statements");
        if let Some(DatabaseLocation::Sqlite(_)) = location
            && listen_url.is_some()
        {
            self.complain(
                "database.listen_url",
                "needs database.url, the same PostgreSQL server behind a pooler",
            );
        }
        if !prepared_statements && listen_url.is_none() {
            let message =
                "only a pooler needs false: then set database.listen_url, the server without the pooler";
            self.complain("database.prepared_statements", message);
        }
        Some(match location? {
            DatabaseLocation::Postgres(server) => DatabaseLocation::Postgres(PostgresLocation {
                listen_url,
                pool: usize::try_from(pool).unwrap_or(PostgresLocation::DEFAULT_POOL),
                prepared_statements,
                ..server
            }),
            sqlite @ DatabaseLocation::Sqlite(_) => sqlite,
        })
    }

    fn data_dir(&mut self, sources: &Sources) -> PathBuf {
        let text = self.text("data_dir");
        if text.is_empty() {
            self.complain("data_dir", "must name a folder");
        }
        let joined = sources.working_dir.join(text);
        // Normalised, so that messages show a readable path.
        joined.components().filter(|part| *part != std::path::Component::CurDir).collect()
    }

    fn hosted_domains(&mut self) -> Vec<String> {
        let given = self.list("hosted_domains");
        if given.is_empty() {
            self.complain("hosted_domains", "needs at least one domain");
        }
        let mut domains: Vec<String> = Vec::new();
        for name in given {
            match mail::address::Address::parse(&format!("postmaster@{name}")) {
                Ok(address) if domains.iter().any(|domain| domain == address.domain()) => {
                    self.complain("hosted_domains", format!("names {name:?} twice"));
                }
                Ok(address) => domains.push(address.domain().to_owned()),
                Err(error) => self.complain("hosted_domains", format!("{name:?} is not a domain: {error}")),
            }
        }
        domains
    }

    fn http(&mut self) -> Option<Http> {
        let listen = self.parsed("http.listen", socket_address);
        let metrics_listen = self.optional("http.metrics_listen", socket_address);
        if listen.is_some() && metrics_listen == listen && listen.is_some_and(|at| at.port() != 0) {
            self.complain(
                "http.metrics_listen",
                "must differ from http.listen; set http.metrics = true to share that",
            );
        }
        let public_url = self.optional("http.public_url", public_url);
        let anonymous_rpm = self.number("http.anonymous_rpm", 1..=1_000_000_000);
        let max_connections = self.number("http.max_connections", 1..=1_000_000);
        let connections_per_client = self.number("http.connections_per_client", 1..=1_000_000);
        let mut cors_origins = Vec::new();
        for text in self.list("http.cors_origins") {
            match origin(&text) {
                Ok(origin) => cors_origins.push(origin),
                Err(message) => self.complain("http.cors_origins", message),
            }
        }
        let metrics = self.flag("http.metrics");
        let trust_proxy = self.proxies("http.trust_proxy");
        Some(Http {
            listen: listen?,
            public_url,
            anonymous_rpm: anonymous_rpm.unsigned_abs(),
            cors_origins,
            metrics,
            metrics_listen,
            trust_proxy,
            max_connections: usize::try_from(max_connections).ok()?,
            connections_per_client: u32::try_from(connections_per_client).ok()?,
        })
    }

    fn console(&mut self) -> web::ConsoleLimits {
        web::ConsoleLimits {
            pages_per_minute: self.number("console.pages_per_minute", 1..=1_000_000_000).unsigned_abs(),
            conversations_per_page: self.number("console.conversations_per_page", 1..=100),
            rows_per_page: self.number("console.rows_per_page", 1..=100),
            newest_shown: self.number("console.newest_shown", 1..=1000),
            undo_send_seconds: self.number("console.undo_send_seconds", 0..=60),
        }
    }

    fn smtp(&mut self, sources: &Sources) -> Option<Smtp> {
        let listen = self.parsed("smtp.listen", socket_address);
        let lmtp_listen = self.optional("smtp.lmtp_listen", socket_address);
        if lmtp_listen.is_some_and(|at| at.port() != 0) && lmtp_listen == listen {
            self.complain("smtp.lmtp_listen", "must differ from smtp.listen");
        }
        let hostname = self.optional("smtp.hostname", host_name);
        let max_message_bytes = self.number("smtp.max_message_bytes", 1024..=1_073_741_824);
        let connections_per_minute = self.number("smtp.connections_per_minute", 1..=1_000_000_000);
        let connections_per_address = self.number("smtp.connections_per_address", 1..=1_000_000);
        let max_connections = self.number("smtp.max_connections", 1..=1_000_000);
        let path = |text: &str| Ok(sources.working_dir.join(text));
        let certificate = self.optional("smtp.tls_certificate", path);
        let key = self.optional("smtp.tls_key", path);
        if certificate.is_some() != key.is_some() {
            let missing = if key.is_some() { "smtp.tls_certificate" } else { "smtp.tls_key" };
            self.complain(missing, "must be set together with its counterpart");
        }
        Some(Smtp {
            listen: listen?,
            lmtp_listen,
            hostname,
            max_message_bytes: usize::try_from(max_message_bytes).ok()?,
            connections_per_minute: u32::try_from(connections_per_minute).ok()?,
            connections_per_address: u32::try_from(connections_per_address).ok()?,
            max_connections: usize::try_from(max_connections).ok()?,
            tls: certificate.zip(key).map(|(certificate, key)| TlsFiles { certificate, key }),
        })
    }

    fn outbound(&mut self) -> Outbound {
        let mode = self.choice("outbound.mode", &["local", "relay", "direct", "sandbox"]);
        let mode = mode.parse().unwrap_or(OutboundMode::Local);
        let relay_url = self.optional("outbound.relay_url", relay_url);
        if mode == OutboundMode::Relay && self.text("outbound.relay_url").is_empty() {
            self.complain("outbound.relay_url", "is needed for outbound.mode = \"relay\"");
        }
        let mut dns_servers = Vec::new();
        for text in self.list("outbound.dns_servers") {
            match socket_address(&text) {
                Ok(address) => dns_servers.push(address),
                Err(message) => self.complain("outbound.dns_servers", message),
            }
        }
        let send_window = self.number("outbound.send_window", 0..=300);
        Outbound {
            mode,
            relay_url,
            messages_per_connection: u32::try_from(self.number("outbound.mails_per_connection", 1..=100_000))
                .unwrap_or(1),
            send_window: Duration::from_secs(send_window.unsigned_abs()),
            retry_seconds: self.number("outbound.retry_hours", 1..=720) * 3600,
            allow_private: self.flag("outbound.allow_private"),
            port: u16::try_from(self.number("outbound.port", 1..=65_535)).unwrap_or(25),
            dns_servers,
        }
    }

    fn inbound(&mut self, sources: &Sources) -> Inbound {
        let mut dns_servers = Vec::new();
        for text in self.list("inbound.dns_servers") {
            match socket_address(&text) {
                Ok(address) => dns_servers.push(address),
                Err(message) => self.complain("inbound.dns_servers", message),
            }
        }
        let blocklists: Vec<PathBuf> =
            self.list("scan.url_blocklist").iter().map(|path| sources.working_dir.join(path)).collect();
        for path in blocklists.iter().filter(|path| !path.is_file()) {
            self.complain("scan.url_blocklist", format!("there is no file {}", path.display()));
        }
        Inbound {
            verify_senders: self.flag("inbound.verify_senders"),
            dns_servers,
            http_secret: self.optional("inbound.http_secret", long_secret),
            clamd: self
                .optional("scan.clamd", |text| text.parse().map_err(|error: ClamdError| error.to_string())),
            blocklists,
        }
    }

    fn log(&mut self) -> Option<Log> {
        let json = self.choice("log.format", &["text", "json"]) == "json";
        let level = self.choice("log.level", &["error", "warn", "info", "debug", "trace"]).parse();
        Some(Log { json, level: level.ok()? })
    }

    fn plans(&mut self) -> Option<Plans> {
        let mut plans = Table::new();
        let mut sound = true;
        for entry in self.entries {
            let Some((plan, name)) = entry.key.strip_prefix("plans.").and_then(|key| key.split_once('.'))
            else {
                continue;
            };
            if !is_plan_value(entry) {
                sound = false;
                let unlimited = if is_limit(&entry.key) { " or \"unlimited\"" } else { "" };
                self.complain(&entry.key, format!("expected a whole number{unlimited}"));
            }
            if let Value::Table(table) =
                plans.entry(plan.to_owned()).or_insert_with(|| Value::Table(Table::new()))
            {
                table.insert(name.to_owned(), entry.value.clone());
            }
        }
        if !sound {
            return None;
        }
        plans.try_into().map_err(|error: toml::de::Error| self.complain("plans", error.message())).ok()
    }

    fn entry(&self, key: &str) -> Option<&'a Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    fn complain(&mut self, key: &str, message: impl Into<String>) {
        let origin = self.entry(key).and_then(|entry| entry.origin.clone());
        let origin = origin.unwrap_or_else(|| "default".to_owned());
        self.problems.push(Problem { key: key.to_owned(), origin, message: message.into() });
    }

    /// The value in its expected type; for a mistake the default is used, so that reading can go on.
    fn typed<T>(&mut self, key: &str, expected: &str, convert: impl Fn(&'a Value) -> Option<T>) -> Option<T> {
        let entry = self.entry(key)?;
        let value = convert(&entry.value);
        if value.is_none() {
            self.complain(key, format!("expected {expected}, found {}", kind_of(&entry.value)));
        }
        value.or_else(|| convert(&entry.default))
    }

    fn text(&mut self, key: &str) -> &'a str {
        self.typed(key, "a string", Value::as_str).unwrap_or_default().trim()
    }

    fn flag(&mut self, key: &str) -> bool {
        self.typed(key, "true or false", Value::as_bool).unwrap_or_default()
    }

    fn number(&mut self, key: &str, range: RangeInclusive<i64>) -> i64 {
        let number = self.typed(key, "a whole number", Value::as_integer).unwrap_or_default();
        if !range.contains(&number) {
            self.complain(key, format!("must be between {} and {}", range.start(), range.end()));
        }
        number
    }

    fn list(&mut self, key: &str) -> Vec<String> {
        let texts = |value: &Value| {
            let items = value.as_array()?.iter();
            items.map(|item| item.as_str().map(|text| text.trim().to_owned())).collect()
        };
        self.typed(key, "a list of strings", texts).unwrap_or_default()
    }

    fn choice(&mut self, key: &str, choices: &[&'static str]) -> &'static str {
        let text = self.text(key);
        choices.iter().find(|choice| **choice == text).copied().unwrap_or_else(|| {
            self.complain(key, format!("expected {}, found {text:?}", alternatives(choices)));
            choices[0]
        })
    }

    /// A text parsed by `parse`, whose error must not repeat what may be a secret.
    fn parsed<T>(&mut self, key: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let text = self.text(key);
        parse(text).map_err(|message| self.complain(key, message)).ok()
    }

    /// A text that may be empty.
    fn optional<T>(&mut self, key: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        if self.text(key).is_empty() { None } else { self.parsed(key, parse) }
    }
}

fn alternatives(choices: &[&str]) -> String {
    let quoted: Vec<String> = choices.iter().map(|choice| format!("{choice:?}")).collect();
    quoted.join(" or ")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number with a fraction",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a time",
        Value::Array(_) => "a list",
        Value::Table(_) => "a section",
    }
}

fn is_plan_value(entry: &Entry) -> bool {
    match &entry.value {
        Value::Integer(number) => *number >= 0,
        Value::String(text) => is_limit(&entry.key) && text == "unlimited",
        _ => false,
    }
}

fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("expected an address with a port such as 127.0.0.1:8080, found {text:?}"))
}

/// A secret of sufficient length.
fn long_secret(text: &str) -> Result<String, String> {
    if text.len() < 16 {
        return Err("needs at least 16 characters".to_owned());
    }
    Ok(text.to_owned())
}

/// Terms of an SPF record, without its version and its `all`.
fn spf_terms(text: &str) -> Result<String, String> {
    let terms: Vec<&str> = text.split_whitespace().collect();
    let plain = |term: &&str| {
        let bare = term.trim_start_matches(['+', '-', '~', '?']);
        term.is_ascii()
            && !term.contains(['"', ';'])
            && !bare.eq_ignore_ascii_case("all")
            && !bare.starts_with("v=")
    };
    if terms.iter().all(plain) {
        return Ok(terms.join(" "));
    }
    Err(format!("expected terms such as \"include:relay.example ip4:192.0.2.1\", found {text:?}"))
}

/// A host name in the form that DNS and certificates use.
fn host_name(text: &str) -> Result<String, String> {
    let address = mail::address::Address::parse(&format!("postmaster@{text}"));
    address
        .map(|address| address.domain().to_owned())
        .map_err(|_| format!("expected a host name such as mail.example.com, found {text:?}"))
}

fn relay_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
    if !matches!(url.scheme(), "smtp" | "smtps") {
        return Err("must begin with smtp:// or smtps://".to_owned());
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("must name a host".to_owned());
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return Err("must end after the host and its port".to_owned());
    }
    Ok(url)
}

fn public_url(text: &str) -> Result<String, String> {
    let example = "expected an address such as https://mail.example.com";
    origin(text).map_err(|_| format!("{example}, without a path, found {text:?}"))
}

/// An origin: a scheme, a host and an optional port, as browsers write it.
fn origin(text: &str) -> Result<String, String> {
    let url = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
    });
    let expected = || format!("expected origins such as https://app.example.com, found {text:?}");
    url.map(|url| url.origin().ascii_serialization()).ok_or_else(expected)
}

fn currency(text: &str) -> Result<String, String> {
    if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Ok(text.to_ascii_uppercase());
    }
    Err(format!("expected three letters such as USD, found {text:?}"))
}
