//! Every metric of the service: its name, help text and labels.
//!
//! The help texts in `/metrics`, the series that exist from the start and the table in `docs/operating.md` follow
//! from it; tests compare it with what the crates record, with that table, and with the dashboard and the alerts.

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// A label of a metric.
#[derive(Debug)]
pub(super) struct Label {
    pub(super) name: &'static str,
    /// All its values; empty if they are not known beforehand.
    pub(super) values: &'static [&'static str],
}

/// A metric.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
    pub(super) labels: &'static [Label],
}

const fn counter(name: &'static str, help: &'static str, labels: &'static [Label]) -> Metric {
    Metric { name, kind: Kind::Counter, help, labels }
}

const fn gauge(name: &'static str, help: &'static str, labels: &'static [Label]) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels }
}

const fn histogram(name: &'static str, help: &'static str, labels: &'static [Label]) -> Metric {
    Metric { name, kind: Kind::Histogram, help, labels }
}

const fn open(name: &'static str) -> Label {
    Label { name, values: &[] }
}

const fn closed(name: &'static str, values: &'static [&'static str]) -> Label {
    Label { name, values }
}

/// The reasons for refusing a recipient at RCPT.
const REFUSALS: &[&str] = &[
    "unknown",
    "relay",
    "disabled",
    "policy",
    "full",
    "later",
    "address",
    "too_many",
    "temporary",
    "protocol",
];
const CREDIT_CLASSES: &[&str] = &["read", "write", "email_send", "provision", "ai_light", "ai_heavy"];
const QUEUES: &[&str] = &["outbound", "webhooks", "triage", "documents", "scans", "schedules"];

pub(super) const METRICS: &[Metric] = &[
    // HTTP.
    counter(
        "http_requests_total",
        "Requests answered.",
        &[open("operation"), closed("status", &["2xx", "3xx", "4xx", "5xx"])],
    ),
    histogram("http_request_seconds", "Time until the response started.", &[open("operation")]),
    gauge("http_connections", "Open connections.", &[]),
    counter("http_connections_total", "Connections served.", &[]),
    counter(
        "http_connections_refused_total",
        "Connections closed at once because the client had too many open.",
        &[],
    ),
    counter("http_connections_expired_total", "Connections closed because the client was too slow.", &[]),
    // Incoming mail.
    gauge("smtp_connections", "Open SMTP and LMTP connections.", &[]),
    counter("smtp_connections_refused_total", "SMTP connections refused with 421.", &[]),
    counter("smtp_recipients_refused_total", "Recipients refused at RCPT.", &[closed("reason", REFUSALS)]),
    counter(
        "messages_received_total",
        "Messages stored for recipients, from SMTP, LMTP and the signed hook.",
        &[],
    ),
    counter(
        "messages_refused_total",
        "Messages refused for all recipients after their content was received.",
        &[],
    ),
    // Outgoing mail.
    counter(
        "outbound_attempts_total",
        "Attempts to deliver a queued message to one recipient.",
        &[closed("result", &["sent", "deferred", "bounced"])],
    ),
    gauge(
        "outbound_queue_overdue_seconds",
        "How long the oldest queued recipient has been due, without destinations that are backing off.",
        &[],
    ),
    gauge(
        "queue_waiting",
        "Records in a queue, counted up to 10,000; the same on every node.",
        &[closed("queue", QUEUES)],
    ),
    counter(
        "webhook_attempts_total",
        "Attempts to deliver an event to a webhook; pending ones are retried.",
        &[closed("status", &["delivered", "pending", "failed"])],
    ),
    // The store.
    histogram(
        "store_seconds",
        "Duration of a transaction, including time spent queued.",
        &[closed("kind", &["read", "write", "snapshot"])],
    ),
    counter(
        "store_statements_total",
        "Statements sent to PostgreSQL, without those that only begin or end a transaction.",
        &[],
    ),
    counter(
        "store_round_trips_total",
        "How often the service waited for PostgreSQL's response to statements.",
        &[],
    ),
    counter("damaged_contents_total", "Stored messages that could not be read.", &[]),
    counter("upkeep_runs_total", "Maintenance runs.", &[closed("ok", &["true", "false"])]),
    gauge("disk_free_bytes", "Free disk space available to the service, by folder.", &[open("path")]),
    gauge("disk_size_bytes", "Size of the disk that holds a folder.", &[open("path")]),
    // Credits and payments.
    counter("credits_charged_total", "Credits charged for calls.", &[closed("class", CREDIT_CLASSES)]),
    counter("credits_refused_total", "Calls refused because the period's credits were used up.", &[]),
    counter(
        "payments_settled_total",
        "Results of payment settlements; pending ones are reconciled.",
        &[closed("state", &["settled", "failed", "pending"])],
    ),
    // Models and memory.
    counter(
        "model_requests_total",
        "Requests to the language model.",
        &[closed("result", &["ok", "failed"])],
    ),
    histogram("model_request_seconds", "Duration of requests to the language model.", &[]),
    gauge("memory_index_bytes", "Memory used by the workspaces' indexes.", &[]),
    gauge(
        "memory_passages_waiting",
        "Passages whose vectors are still to be recomputed for the current model.",
        &[],
    ),
    counter("memory_passages_renewed_total", "Passages whose vectors were recomputed.", &[]),
    counter("memory_chunks_total", "Document chunks indexed.", &[]),
    counter("memory_emails_total", "Messages indexed into memory.", &[]),
    // Workers and the process.
    gauge(
        "worker_up",
        "Whether a background worker is running (1) or waiting for its restart (0).",
        &[open("worker")],
    ),
    counter(
        "worker_restarts_total",
        "Restarts of a background worker that panicked or returned.",
        &[open("worker")],
    ),
    counter(
        "worker_item_panics_total",
        "Items whose processing panicked without ending the worker.",
        &[open("worker")],
    ),
    gauge(
        "agent_mailbox_info",
        "Always 1; labels carry the program's version and its database engine.",
        &[open("version"), open("engine")],
    ),
    gauge("process_resident_memory_bytes", "Resident memory of the process.", &[]),
    gauge("process_open_fds", "Open file descriptors.", &[]),
    gauge("process_uptime_seconds", "Time since the process started.", &[]),
    gauge(
        "clock_ahead_seconds",
        "How far the clock of this machine is ahead of the database's, by which all nodes go; on PostgreSQL.",
        &[],
    ),
];

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        fs,
        path::{Path, PathBuf},
    };

    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
    }

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }

    /// The metrics that a source records: kind, name, labels.
    fn recorded(source: &str) -> Vec<(Kind, String, Vec<String>)> {
        let mut found = Vec::new();
        for (macro_name, kind) in
            [("counter!(", Kind::Counter), ("gauge!(", Kind::Gauge), ("histogram!(", Kind::Histogram)]
        {
            for (at, _) in source.match_indices(macro_name) {
                let before = source[..at].chars().next_back();
                let rest = source[at + macro_name.len()..].trim_start();
                // Not `describe_counter!`, and only with a literal name.
                if before.is_some_and(|character| character.is_alphanumeric() || character == '_') {
                    continue;
                }
                let Some((name, rest)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) else {
                    continue;
                };
                let mut depth = 1;
                let end = rest.find(|character| {
                    depth += i32::from(character == '(') - i32::from(character == ')');
                    depth == 0
                });
                let words: Vec<&str> = rest[..end.unwrap()].split('"').collect();
                let is_label = |pair: &&[&str]| pair[1].trim_start().starts_with("=>");
                let labels = words[1..].chunks(2).filter(|pair| pair.len() == 2).filter(is_label);
                found.push((kind, name.to_owned(), labels.map(|pair| pair[0].to_owned()).collect()));
            }
        }
        found
    }

    #[test]
    fn whatever_is_recorded_is_in_the_catalogue() {
        let mut files = Vec::new();
        sources(&root().join("crates"), &mut files);
        files.retain(|file| {
            file.components().any(|part| part.as_os_str() == "src") && !file.ends_with("catalogue.rs")
        });
        let by_name: BTreeMap<&str, &Metric> = METRICS.iter().map(|metric| (metric.name, metric)).collect();
        assert_eq!(by_name.len(), METRICS.len(), "a name stands there twice");
        let mut seen = 0;
        for file in files {
            for (kind, name, labels) in recorded(&fs::read_to_string(&file).unwrap()) {
                let path = file.display();
                let metric = by_name.get(name.as_str()).unwrap_or_else(|| panic!("{path}: {name}"));
                let expected: Vec<&str> = metric.labels.iter().map(|label| label.name).collect();
                assert_eq!(
                    (kind, labels),
                    (metric.kind, expected.iter().map(ToString::to_string).collect()),
                    "{name}"
                );
                seen += 1;
            }
        }
        assert!(seen > 30, "{seen}");
        assert_eq!(
            recorded("metrics::counter!(\n \"a_total\",\n \"b\" => f(c), \"d\" => \"e\"\n).increment(1)"),
            [(Kind::Counter, "a_total".to_owned(), vec!["b".to_owned(), "d".to_owned()])]
        );
    }

    /// The row of a metric in the manual.
    fn row(metric: &Metric) -> String {
        let label = |label: &Label| match label.values {
            [] => format!("`{}`", label.name),
            values => format!("`{}` ({})", label.name, values.join(", ")),
        };
        let labels: Vec<String> = metric.labels.iter().map(label).collect();
        let kind = format!("{:?}", metric.kind).to_lowercase();
        format!("| `{}` | {kind} | {} | {} |", metric.name, labels.join(", "), metric.help)
    }

    #[test]
    fn the_manual_lists_them_all() {
        let manual = fs::read_to_string(root().join("docs/operating.md")).unwrap();
        let section = manual.split("\n## Metrics\n").nth(1).unwrap().split("\n## ").next().unwrap();
        let listed: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
        let expected: Vec<String> = METRICS.iter().map(row).collect();
        assert_eq!(listed, expected, "the table should be:\n{}\n", expected.join("\n"));
    }
}
