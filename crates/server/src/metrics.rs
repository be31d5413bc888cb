//! Metrics in Prometheus' text form, with a few figures about the process itself.

use std::{sync::Arc, time::Duration};

use ::metrics::{Unit, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::time::Instant;

use crate::failure::{Failure, Result};

/// How old the figures about the process may be.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// The upper bounds of the histogram's buckets, in seconds: from a cached read to a long poll.
const SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// Starts collecting, and returns what renders the text.
pub fn start(engine: &'static str) -> Result<Arc<dyn Fn() -> String + Send + Sync>> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(|error| Failure::new(format!("Metrics cannot be collected: {error}")))?;
    describe();
    gauge!("agent_mailbox_info", "version" => env!("CARGO_PKG_VERSION"), "engine" => engine).set(1.0);
    tokio::spawn(sample_for_ever(handle.clone(), Instant::now()));
    Ok(Arc::new(move || handle.render()))
}

fn describe() {
    describe_counter!("http_requests_total", "Requests answered, by operation and status.");
    describe_histogram!("http_request_seconds", Unit::Seconds, "Time until the answer began, by operation.");
    describe_gauge!("http_connections", "Open connections.");
    describe_counter!("http_connections_total", "Connections that were served.");
    describe_counter!(
        "http_connections_refused_total",
        "Connections that were closed at once because their client had too many."
    );
    describe_counter!(
        "http_connections_expired_total",
        "Connections closed because the client was too slow."
    );
    describe_gauge!("smtp_connections", "Open connections that bring mail.");
    describe_counter!(
        "smtp_connections_refused_total",
        "Connections that were to bring mail and were turned away because there were too many."
    );
    describe_counter!(
        "webhook_attempts_total",
        "Attempts to tell a webhook about an event, by what came of them."
    );
    describe_gauge!("memory_index_bytes", Unit::Bytes, "Memory that the indexes of workspaces take.");
    describe_gauge!("memory_passages_waiting", "Passages whose vectors are made anew for another model.");
    describe_counter!("memory_passages_renewed_total", "Passages whose vectors were made anew.");
    describe_counter!("memory_chunks_total", "Pieces of documents that were indexed.");
    describe_counter!("memory_emails_total", "Mails that were taken into memory.");
    describe_counter!("upkeep_runs_total", "Rounds of upkeep, by outcome.");
    describe_gauge!("agent_mailbox_info", "The version of the program and the engine of its store.");
    describe_gauge!("process_resident_memory_bytes", Unit::Bytes, "Memory that the process has in use.");
    describe_gauge!("process_open_fds", "Open file descriptors.");
    describe_gauge!("process_uptime_seconds", Unit::Seconds, "Time since the process started.");
}

async fn sample_for_ever(handle: PrometheusHandle, started: Instant) {
    let mut ticks = tokio::time::interval(SAMPLE_EVERY);
    loop {
        ticks.tick().await;
        let handle = handle.clone();
        // Counting descriptors takes milliseconds when there are many.
        let sampled = tokio::task::spawn_blocking(move || {
            handle.run_upkeep();
            if let Some(bytes) = resident_bytes() {
                gauge!("process_resident_memory_bytes").set(bytes);
            }
            if let Ok(descriptors) = std::fs::read_dir("/proc/self/fd") {
                let count = u32::try_from(descriptors.count()).unwrap_or(u32::MAX);
                gauge!("process_open_fds").set(f64::from(count));
            }
            gauge!("process_uptime_seconds").set(started.elapsed().as_secs_f64());
        });
        if sampled.await.is_err() {
            return;
        }
    }
}

/// The resident memory, as the kernel tells it.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024.0)
}
