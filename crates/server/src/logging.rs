//! Log lines on standard error, as text for people or as JSON for machines.

use std::io::{self, IsTerminal};

use tracing::{Level, level_filters::LevelFilter};
use tracing_subscriber::{
    Layer, Registry, filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

use crate::config::Log;

/// Our own crates, whose lines are known to hold no secrets and no mail.
const OWN: [&str; 6] = ["agent_mailbox", "web", "operations", "store", "mail", "model"];

/// Starts logging. What other people's crates say below a warning is never written: it may quote requests.
pub fn start(log: Log) {
    let others = LevelFilter::from_level(log.level.min(Level::WARN));
    let targets = Targets::new().with_default(others);
    let targets = OWN.iter().fold(targets, |targets, name| targets.with_target(*name, log.level));
    let lines = if log.json {
        fmt::layer().json().flatten_event(true).with_writer(io::stderr).boxed()
    } else {
        fmt::layer().with_ansi(io::stderr().is_terminal()).with_writer(io::stderr).boxed()
    };
    // Fails only when a logger is there already, which then does.
    let _ = Registry::default().with(lines.with_filter(targets)).try_init();
}

/// Logging for commands that end soon: only what the operator should know.
pub fn start_quietly() {
    start(Log { json: false, level: Level::WARN });
}
