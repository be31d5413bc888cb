//! Log lines on standard error, as text or as JSON.

use std::io;

use tracing::{Level, Metadata, Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    Layer, Registry,
    filter::{FilterFn, filter_fn},
    fmt,
    layer::SubscriberExt,
    registry::LookupSpan,
    util::SubscriberInitExt,
};

#[cfg(feature = "opentelemetry")]
use crate::telemetry::Exporter;
use crate::{
    config::{Log, Telemetry},
    failure::Result,
    output,
};

/// Our own crates, whose lines are known to hold no secrets and no message content. A test compares them with the
/// workspace.
const OWN_CRATES: [&str; 11] = [
    "adapters",
    "agent_mailbox",
    "embed",
    "leaks",
    "mail",
    "mcp",
    "model",
    "operations",
    "pay",
    "store",
    "web",
];
/// The prefix of the mail log's targets, whichever crate writes the line.
const MAIL_LOG: &str = "mail.";

/// The exporter of traces, in builds without the feature.
#[cfg(not(feature = "opentelemetry"))]
pub struct Exporter;

/// Starts logging, and exporting traces if configured, until the returned value is dropped.
#[cfg_attr(
    not(feature = "opentelemetry"),
    expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")
)]
pub fn start(log: Log, telemetry: Option<&Telemetry>) -> Result<Option<Exporter>> {
    #[cfg(feature = "opentelemetry")]
    {
        let exporter = telemetry.map(Exporter::start).transpose()?;
        let spans = exporter.as_ref().map(|exporter| {
            let layer = tracing_opentelemetry::layer().with_tracer(exporter.tracer());
            let layer = layer.with_location(false).with_threads(false).with_target(false);
            layer.with_filter(filter_fn(|line| line.is_span() && is_own(line.target())))
        });
        // Fails only when a logger is already installed, which is then used.
        let _ = Registry::default().with(spans).with(lines(log)).try_init();
        Ok(exporter)
    }
    #[cfg(not(feature = "opentelemetry"))]
    {
        // The configuration check has refused an endpoint.
        let _ = telemetry;
        start_lines(log);
        Ok(None)
    }
}

fn start_lines(log: Log) {
    // Fails only when a logger is already installed, which is then used.
    let _ = Registry::default().with(lines(log)).try_init();
}

/// The layer that writes lines. Lines of third-party crates below a warning are never written: they may quote
/// requests.
fn lines<S: Subscriber + for<'a> LookupSpan<'a>>(log: Log) -> impl Layer<S> {
    let lines = if log.json {
        fmt::layer().json().flatten_event(true).log_internal_errors(false).with_writer(io::stderr).boxed()
    } else {
        // A closed pipe is no reason to complain, to the same pipe, and to panic over that.
        let lines = fmt::layer().with_ansi(output::colored_errors()).log_internal_errors(false);
        lines.with_writer(io::stderr).boxed()
    };
    lines.with_filter(level_filter(log.level))
}

/// Logging for short commands: warnings and errors only.
pub fn start_quietly() {
    start_lines(Log { json: false, level: Level::WARN });
}

/// Whether a line is written at a level.
fn level_filter(level: Level) -> FilterFn<impl Fn(&Metadata<'_>) -> bool> {
    let others = level.min(Level::WARN);
    filter_fn(move |line| *line.level() <= if is_own(line.target()) { level } else { others })
        .with_max_level_hint(LevelFilter::from_level(level))
}

/// Whether a line is ours. By whole names: `mail_parser` is not `mail`.
fn is_own(target: &str) -> bool {
    let name = target.split_once("::").map_or(target, |(name, _)| name);
    OWN_CRATES.contains(&name) || target.starts_with(MAIL_LOG)
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        path::Path,
    };

    use super::*;

    /// The crates of the workspace that the program depends on, by their `Cargo.toml`.
    fn parts_of_the_program() -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut crates: BTreeMap<String, toml::Table> = BTreeMap::new();
        for entry in folder.read_dir().unwrap() {
            let Ok(text) = std::fs::read_to_string(entry.unwrap().path().join("Cargo.toml")) else {
                continue;
            };
            let manifest: toml::Table = text.parse().unwrap();
            // A macro runs in the compiler and logs nothing.
            if manifest.get("lib").is_some_and(|lib| lib.get("proc-macro").is_some()) {
                continue;
            }
            crates.insert(manifest["package"]["name"].as_str().unwrap().to_owned(), manifest);
        }
        let (mut found, mut pending) = (BTreeSet::new(), vec!["server".to_owned()]);
        while let Some(name) = pending.pop() {
            let Some(manifest) = crates.get(&name) else { continue };
            if found.insert(name) {
                pending.extend(manifest["dependencies"].as_table().unwrap().keys().cloned());
            }
        }
        found
    }

    #[test]
    fn no_crate_is_forgotten() {
        let as_target = |name: &String| {
            if name == "server" { "agent_mailbox".to_owned() } else { name.replace('-', "_") }
        };
        let parts: BTreeSet<String> = parts_of_the_program().iter().map(as_target).collect();
        assert!(parts.len() > 6, "{parts:?}");
        assert_eq!(parts, OWN_CRATES.iter().map(ToString::to_string).collect());
    }

    #[test]
    fn lines_are_matched_by_whole_names() {
        let ours = [
            "mail",
            "mail::smtp",
            "mail.received",
            "mcp::call",
            "pay::x402",
            "embed",
            "agent_mailbox::serve",
        ];
        assert_eq!(ours.map(is_own), [true; 7]);
        let others = ["mail_parser", "mail_auth::dkim", "model_other", "hyper", "h2::codec", "web_sys", ""];
        assert_eq!(others.map(is_own), [false; 7]);
    }
}
