//! The configuration's layers, its mistakes, and the defaults that the specification promises.

use std::path::PathBuf;

use model::{Limit, plans::PlanLimits};
use store::{DatabaseLocation, blobs::BlobLocation};
use web::Proxies;

use super::*;

fn environment(pairs: &[(&str, &str)]) -> Sources {
    let environment = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Sources { working_dir: PathBuf::from("/nowhere"), environment, ..Sources::default() }
}

fn file(text: &str) -> (tempfile::TempDir, Sources) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agent-mailbox.toml"), text).unwrap();
    let sources = Sources { working_dir: folder.path().to_owned(), ..Sources::default() };
    (folder, sources)
}

fn problems(sources: &Sources) -> Vec<String> {
    Config::load(sources).unwrap_err().iter().map(ToString::to_string).collect()
}

/// rules: CLI-1
#[test]
fn the_defaults_are_those_of_the_contract() {
    let config = Config::load(&environment(&[])).unwrap();
    assert_eq!(config.data_dir, PathBuf::from("/nowhere/data"));
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.hosted_domains, ["agents.localhost"]);
    assert_eq!(config.http.anonymous_rpm, 1200);
    let (console, usual) = (config.console, web::ConsoleLimits::default());
    assert_eq!(
        (
            console.pages_per_minute,
            console.conversations_per_page,
            console.rows_per_page,
            console.newest_shown,
            console.undo_send_seconds
        ),
        (1200, 50, 25, 100, 10)
    );
    assert_eq!(format!("{console:?}"), format!("{usual:?}"));
    let smtp = &config.smtp;
    assert_eq!(smtp.listen.to_string(), "127.0.0.1:2525");
    assert!(smtp.lmtp_listen.is_none() && smtp.hostname.is_none() && smtp.tls.is_none());
    assert_eq!(
        (smtp.connections_per_minute, smtp.connections_per_address, smtp.max_connections),
        (600, 50, 2000)
    );
    assert_eq!(smtp.max_message_bytes, 40 * 1024 * 1024);
    assert!(config.open_sign_up && config.http.cors_origins.is_empty());
    assert_eq!((&config.http.trust_proxy, config.http.connections_per_client), (&Proxies::None, 200));
    assert!(
        matches!(&config.database, DatabaseLocation::Sqlite(path) if path.ends_with("data/agent-mailbox.db"))
    );
    assert!(matches!(&config.blobs, BlobLocation::Directory(path) if path.ends_with("data/blobs")));
    assert!(matches!(&config.master_key, KeySource::File(path) if path.ends_with("data/master.key")));
    let settings = config.settings();
    assert_eq!(settings.public_url, "http://127.0.0.1:8080");
    assert_eq!((settings.outbound.mode.as_str(), settings.mailbox_grace_seconds), ("local", 7 * 86_400));
    assert_eq!((settings.affiliate_percent, settings.currency.as_str()), (20, "USD"));
    assert_eq!((settings.blob_provider.as_str(), settings.blob_bucket.as_str()), ("local", "blobs"));
    assert_eq!(settings.operator_plan, model::Plan::Enterprise);
    assert!(settings.receives_mail && !settings.sign_up.verify && !settings.sign_up.first_account_code);
}

/// rules: AUTH-27
#[test]
fn the_first_account_needs_a_code_where_others_can_reach_the_server() {
    let needs = |name: &str, value: &str| {
        Config::load(&environment(&[(name, value)])).unwrap().settings().sign_up.first_account_code
    };
    assert!(!needs("AGENT_MAILBOX__HTTP__LISTEN", "127.0.0.1:0"));
    assert!(!needs("AGENT_MAILBOX__HTTP__LISTEN", "[::1]:0"));
    assert!(needs("AGENT_MAILBOX__HTTP__LISTEN", "0.0.0.0:0"));
    assert!(needs("AGENT_MAILBOX__HTTP__LISTEN", "[::]:0"));
    assert!(needs("AGENT_MAILBOX__HTTP__PUBLIC_URL", "https://mail.example"));
    assert!(needs("AGENT_MAILBOX__HTTP__TRUST_PROXY", "true"));
}

/// rules: AUTH-26
#[test]
fn addresses_are_verified_only_where_messages_reach_them() {
    let verify = ("AGENT_MAILBOX__SIGN_UP_VERIFY", "true");
    let problems = problems(&environment(&[verify]));
    assert!(
        problems[0].starts_with("sign_up_verify") && problems[0].contains("outbound.mode"),
        "{problems:?}"
    );
    let config = Config::load(&environment(&[verify, ("AGENT_MAILBOX__OUTBOUND__MODE", "sandbox")])).unwrap();
    assert!(config.settings().sign_up.verify);
}

/// The table in section 2 of the specification, column by column, in the order of its rows.
#[test]
fn the_plans_are_those_of_the_contract() {
    let plans = Config::load(&environment(&[])).unwrap().plans;
    let limits = |plan: &PlanLimits| {
        [
            plan.credits_per_period,
            plan.rpm,
            plan.api_keys,
            plan.mailboxes,
            plan.members,
            plan.domains,
            plan.storage_bytes,
            plan.recipients_per_request,
            plan.recipients_per_minute,
            plan.recipients_per_hour,
            plan.recipients_per_day,
            plan.mails_per_month,
            plan.mails_per_day_and_mailbox,
        ]
    };
    let some = |numbers: [u64; 13]| numbers.map(Limit::of);
    assert_eq!(limits(&plans.free), some([1000, 60, 1, 2, 2, 0, 3_000_000_000, 10, 10, 50, 200, 1000, 100]));
    let mut developer = some([50_000, 300, 5, 10, 5, 5, 10_000_000_000, 0, 0, 0, 0, 10_000, 0]);
    for open in [7, 8, 9, 10, 12] {
        developer[open] = Limit::UNLIMITED;
    }
    assert_eq!(limits(&plans.developer), developer);
    assert_eq!(limits(&plans.enterprise), [Limit::UNLIMITED; 13]);
    assert_eq!(
        (plans.free.price_cents, plans.developer.price_cents, plans.enterprise.price_cents),
        (0, 2900, 0)
    );
}

/// rules: CLI-3
#[test]
fn every_option_has_a_sentence() {
    let text = include_str!("../../../../config.default.toml");
    let mut before = "";
    for line in text.lines() {
        if line.contains(" = ") && !line.starts_with('#') {
            assert!(before.starts_with("# ") && before.ends_with('.'), "no sentence before: {line}");
        }
        before = line;
    }
}

/// rules: CLI-2, CLI-3
#[test]
fn the_environment_wins_over_the_file_and_the_command_line_over_both() {
    let (_folder, mut sources) = file("data_dir = 'a'\nsign_up = 'invite'\n[http]\nlisten = '127.0.0.1:1'\n");
    let config = Config::load(&sources).unwrap();
    assert_eq!((config.http.listen.port(), config.open_sign_up), (1, false));
    assert_eq!(config.data_dir, sources.working_dir.join("a"));
    let listen = ("AGENT_MAILBOX__HTTP__LISTEN".to_owned(), "0.0.0.0:2".to_owned());
    sources.environment = vec![listen, ("AGENT_MAILBOX__DATA_DIR".to_owned(), "b".to_owned())];
    let config = Config::load(&sources).unwrap();
    assert_eq!((config.http.listen.port(), config.open_sign_up), (2, false));
    assert_eq!(config.settings().public_url, "http://127.0.0.1:2", "everywhere is not an address to go to");
    assert_eq!(config.data_dir, sources.working_dir.join("b"));
    sources.data_dir = Some(PathBuf::from("/c"));
    assert_eq!(Config::load(&sources).unwrap().data_dir, PathBuf::from("/c"));
}

#[test]
fn a_variable_has_the_type_of_its_option() {
    let config = Config::load(&environment(&[
        ("AGENT_MAILBOX__HTTP__ANONYMOUS_RPM", "7"),
        ("AGENT_MAILBOX__HTTP__TRUST_PROXY", "true"),
        ("AGENT_MAILBOX__HOSTED_DOMAINS", "one.example, TWO.example"),
        ("AGENT_MAILBOX__HTTP__CORS_ORIGINS", "[\"https://app.example\", 'http://localhost:3000/']"),
        ("AGENT_MAILBOX__PLANS__FREE__RPM", "unlimited"),
        ("AGENT_MAILBOX__PLANS__ENTERPRISE__RPM", "5"),
        ("AGENT_MAILBOX__PLANS__FREE__PRICE_CENTS", "1_000"),
        ("AGENT_MAILBOX__HTTP__PUBLIC_URL", "https://Mail.example/"),
        ("AGENT_MAILBOX__VAULT__MASTER_KEY", &"0f".repeat(32)),
        ("AGENT_MAILBOX__DATABASE__URL", "postgres://me:hush@db/mail"),
        ("AGENT_MAILBOX_TEST", "no business of ours"),
    ]))
    .unwrap();
    assert_eq!((config.http.anonymous_rpm, &config.http.trust_proxy), (7, &Proxies::Count(1)));
    assert_eq!(config.hosted_domains, ["one.example", "two.example"]);
    assert_eq!(config.http.cors_origins, ["https://app.example", "http://localhost:3000"]);
    assert_eq!((config.plans.free.rpm, config.plans.enterprise.rpm), (Limit::UNLIMITED, Limit::of(5)));
    assert_eq!(config.plans.free.price_cents, 1000);
    assert_eq!(config.settings().public_url, "https://mail.example");
    assert!(matches!(config.master_key, KeySource::Given(_)));
    assert!(matches!(config.database, DatabaseLocation::Postgres(_)));
}

#[test]
fn a_pooler_is_in_front_of_a_server() {
    let (_folder, sources) = file(
        "[database]\nurl = 'postgres://me:hush@pooler:6432/mail'\nlisten_url = 'postgres://me:hush@one,two/mail'
         pool = 8\nprepared_statements = false\n",
    );
    let DatabaseLocation::Postgres(server) = Config::load(&sources).unwrap().database else {
        panic!("not PostgreSQL")
    };
    assert_eq!((server.pool, server.prepared_statements), (8, false));
    assert_eq!(server.listen_url.as_deref(), Some("postgres://me:hush@one,two/mail"));
    // A pooler does not pass LISTEN on, and a file has no pooler.
    let without = [
        (
            "[database]\nurl = 'postgres://pooler/mail'\nprepared_statements = false\n",
            "database.prepared_statements ",
        ),
        ("[database]\nlisten_url = 'postgres://db/mail'\n", "database.listen_url "),
    ];
    for (written, key) in without {
        let (_folder, sources) = file(written);
        let problems = problems(&sources);
        assert!(problems.len() == 1 && problems[0].starts_with(key), "{problems:?}");
    }
}

/// rules: HTTP-19
#[test]
fn proxies_are_named_by_number_or_by_network() {
    let networks = |list: &[&str]| Proxies::Networks(list.iter().map(|text| text.parse().unwrap()).collect());
    for (written, meant) in [
        ("true", Proxies::Count(1)),
        ("false", Proxies::None),
        ("2", Proxies::Count(2)),
        ("[]", Proxies::None),
        ("['10.0.0.0/8', '2001:db8::1']", networks(&["10.0.0.0/8", "2001:db8::1"])),
    ] {
        let (_folder, sources) = file(&format!("[http]\ntrust_proxy = {written}\n"));
        assert_eq!(Config::load(&sources).unwrap().http.trust_proxy, meant, "{written}");
        let sources = environment(&[("AGENT_MAILBOX__HTTP__TRUST_PROXY", written)]);
        assert_eq!(Config::load(&sources).unwrap().http.trust_proxy, meant, "{written}");
    }
    let sources = environment(&[("AGENT_MAILBOX__HTTP__TRUST_PROXY", "10.0.0.0/8, 192.0.2.7")]);
    let proxies = Config::load(&sources).unwrap().http.trust_proxy;
    assert_eq!(proxies, networks(&["10.0.0.0/8", "192.0.2.7"]));
    for written in ["0", "17", "-1", "1.5", "'yes'", "['10.0.0.1/8']", "['10.0.0.0/8', 'x']", "[1]"] {
        let (_folder, sources) = file(&format!("[http]\ntrust_proxy = {written}\n"));
        assert!(problems(&sources)[0].starts_with("http.trust_proxy "), "{written}");
    }
}

/// rules: HTTP-21
#[test]
fn metrics_are_shown_to_this_machine_unless_wanted_otherwise() {
    for (listen, metrics, own, shown) in [
        ("127.0.0.1:8080", false, "", true),
        ("[::1]:8080", false, "", true),
        ("127.0.0.1:8080", false, "127.0.0.1:9", false),
        ("127.0.0.1:8080", true, "127.0.0.1:9", true),
        ("0.0.0.0:8080", false, "", false),
        ("[::]:8080", false, "", false),
        ("192.0.2.7:8080", false, "", false),
        ("192.0.2.7:8080", false, "127.0.0.1:9", false),
        ("0.0.0.0:8080", true, "", true),
    ] {
        let text = format!("[http]\nlisten = '{listen}'\nmetrics = {metrics}\nmetrics_listen = '{own}'\n");
        let (_folder, sources) = file(&text);
        assert_eq!(Config::load(&sources).unwrap().http.shows_metrics(), shown, "{text}");
    }
}

#[test]
fn mail_has_its_own_name_certificate_and_listeners() {
    let (_folder, sources) = file(
        "[smtp]\nlisten = '0.0.0.0:25'\nlmtp_listen = '127.0.0.1:24'\nhostname = 'Mail.Bücher.example.'\n\
         tls_certificate = 'cert.pem'\ntls_key = '/etc/key.pem'\n",
    );
    let smtp = Config::load(&sources).unwrap().smtp;
    assert_eq!((smtp.listen.port(), smtp.lmtp_listen.map(|at| at.port())), (25, Some(24)));
    assert_eq!(smtp.hostname.as_deref(), Some("mail.xn--bcher-kva.example"));
    let tls = smtp.tls.unwrap();
    assert_eq!(
        (tls.certificate, tls.key),
        (sources.working_dir.join("cert.pem"), PathBuf::from("/etc/key.pem"))
    );
    let (_folder, sources) = file("[smtp]\nlisten = '127.0.0.1:24'\nlmtp_listen = '127.0.0.1:24'\n");
    assert!(problems(&sources)[0].starts_with("smtp.lmtp_listen "));
}

/// rules: CLI-4
#[test]
fn unknown_names_are_errors_with_a_suggestion() {
    let text = "[htp]\nlisten = '127.0.0.1:1'\n[plans.free]\nrmp = 1\n[plans.gold]\nrpm = 1\n[colour]\nred = 1\n[shape]\n[log]\n";
    let (folder, sources) = file(text);
    let at = folder.path().join("agent-mailbox.toml").display().to_string();
    assert_eq!(
        problems(&sources),
        [
            format!("htp.listen ({at}): there is no such option; did you mean http.listen?"),
            format!("plans.free.rmp ({at}): there is no such option; did you mean plans.free.rpm?"),
            format!("plans.gold.rpm ({at}): there is no such option; did you mean plans.free.rpm?"),
            format!("colour.red ({at}): there is no such option; `agent-mailbox config show` lists them all"),
            format!("shape ({at}): there is no such option; `agent-mailbox config show` lists them all"),
        ]
    );
    let sources = environment(&[("AGENT_MAILBOX__HTTP__LISEN", "x"), ("AGENT_MAILBOX__HTTP", "x")]);
    assert_eq!(
        problems(&sources),
        [
            "http.lisen (AGENT_MAILBOX__HTTP__LISEN): there is no such option; did you mean http.listen \
             (AGENT_MAILBOX__HTTP__LISTEN)?",
            "http (AGENT_MAILBOX__HTTP): is a section, not an option",
        ]
    );
}

/// One mistake in every option that can have one.
const MISTAKES: &str = "
data_dir = 7
sign_up = 'maybe'
hosted_domains = ['a b', 'x.example', 'X.example']
[operator]
plan = 'gold'
[http]
listen = 'localhost'
public_url = 'mail.example'
anonymous_rpm = 0
cors_origins = ['*']
max_connections = '5'
connections_per_client = 0
metrics = 'yes'
trust_proxy = 'yes'
[console]
pages_per_minute = 0
conversations_per_page = 101
rows_per_page = 0
newest_shown = 1001
undo_send_seconds = 61
[smtp]
listen = '2525'
lmtp_listen = 'localhost:24'
hostname = 'a b'
max_message_bytes = 1
connections_per_minute = 0
connections_per_address = 0
max_connections = 0
tls_certificate = 'cert.pem'
[database]
url = 'mysql://me:hush@db/mail'
listen_url = 'hush'
pool = 1
[blobs]
url = 's3://AKIA:hush@host'
[vault]
master_key = 'hush'
[outbound]
mode = 'pigeon'
[mailboxes]
grace_days = -1
[affiliate]
percent = 101
currency = 'dollars'
[log]
format = 'xml'
level = 'loud'
[plans.free]
rpm = -1
credits_per_period = 'lots'
price_cents = 'unlimited'
";

#[test]
fn all_mistakes_are_reported_at_once_and_without_secrets() {
    let (_folder, sources) = file(MISTAKES);
    let problems = Config::load(&sources).unwrap_err();
    let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "data_dir",
            "hosted_domains",
            "hosted_domains",
            "sign_up",
            "operator.plan",
            "http.listen",
            "http.public_url",
            "http.anonymous_rpm",
            "http.max_connections",
            "http.connections_per_client",
            "http.cors_origins",
            "http.metrics",
            "http.trust_proxy",
            "console.pages_per_minute",
            "console.conversations_per_page",
            "console.rows_per_page",
            "console.newest_shown",
            "console.undo_send_seconds",
            "smtp.listen",
            "smtp.lmtp_listen",
            "smtp.hostname",
            "smtp.max_message_bytes",
            "smtp.connections_per_minute",
            "smtp.connections_per_address",
            "smtp.max_connections",
            "smtp.tls_key",
            "database.url",
            "database.listen_url",
            "database.pool",
            "blobs.url",
            "vault.master_key",
            "outbound.mode",
            "mailboxes.grace_days",
            "affiliate.percent",
            "affiliate.currency",
            "log.format",
            "log.level",
            "plans.free.credits_per_period",
            "plans.free.rpm",
            "plans.free.price_cents",
        ]
    );
    for problem in &problems {
        assert!(!problem.to_string().contains("hush"), "{problem}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let mut sources = environment(&[]);
    sources.file = Some(PathBuf::from("/nowhere/other.toml"));
    assert!(problems(&sources)[0].starts_with("/nowhere/other.toml: cannot be read"));
    let (_folder, sources) = file("[http]\nlisten = \n");
    assert!(problems(&sources)[0].contains("is not TOML: line 2"), "{:?}", problems(&sources));
}

#[test]
fn what_is_shown_can_be_read_again_and_holds_no_secret() {
    let key = "0f".repeat(32);
    let sources = environment(&[
        ("AGENT_MAILBOX__VAULT__MASTER_KEY", &key),
        ("AGENT_MAILBOX__DATABASE__URL", "postgres://me:hush@db/mail"),
    ]);
    let text = show(&sources);
    assert!(!text.contains(&key) && !text.contains("hush"), "{text}");
    assert!(text.contains("# AGENT_MAILBOX__VAULT__MASTER_KEY"), "{text}");
    let table: toml::Table = text.parse().unwrap();
    assert_eq!(table["plans"]["developer"]["rpm"].as_integer(), Some(300));
    assert_eq!(table["data_dir"].as_str(), Some("./data"));
}

// rules: OBS-4
#[test]
fn traces_need_a_program_that_can_export_them() {
    assert!(Config::load(&environment(&[])).unwrap().telemetry.is_none());
    let endpoint = ("AGENT_MAILBOX__TELEMETRY__OTLP_ENDPOINT", "http://127.0.0.1:4318");
    let loaded = Config::load(&environment(&[endpoint]));
    if cfg!(feature = "opentelemetry") {
        assert_eq!(loaded.unwrap().telemetry.unwrap().service_name, "agent-mailbox");
    } else {
        let problem = &loaded.unwrap_err()[0];
        assert_eq!(problem.key, "telemetry.otlp_endpoint");
        assert!(problem.message.contains("--features opentelemetry"), "{problem}");
    }
    let wrong = ("AGENT_MAILBOX__TELEMETRY__OTLP_ENDPOINT", "127.0.0.1:4318");
    assert!(problems(&environment(&[wrong]))[0].contains("telemetry.otlp_endpoint"));
}

#[test]
fn a_host_without_a_name_is_called_by_its_domain() {
    let mut config = Config::load(&Sources::default()).unwrap();
    config.hosted_domains = vec!["agents.example".to_owned()];
    let name = config.hostname();
    assert!(name == "agents.example" || rustix::system::uname().nodename().to_string_lossy().contains('.'));
    config.smtp.hostname = Some("mx.test".to_owned());
    assert_eq!(config.hostname(), "mx.test");
}
