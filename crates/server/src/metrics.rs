//! Metrics in Prometheus' text format: the recorder, and gauges that are sampled every few seconds.

mod catalogue;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ::metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use operations::App;
use tokio::time::Instant;

use self::catalogue::{Kind, METRICS, Metric};
use crate::failure::{Failure, Result};

/// Interval of sampling the process and its disks.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of counting the queues in the store.
const COUNT_INTERVAL: Duration = Duration::from_secs(15);

/// The upper bounds of the histogram's buckets, in seconds: from a cached read to a long poll.
const BUCKET_SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// Installs the recorder. Before a store opens, because handles of frequent metrics are kept.
pub fn install() -> Result<PrometheusHandle> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKET_SECONDS)
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(|error| Failure::new(format!("Metrics cannot be collected: {error}")))?;
    METRICS.iter().for_each(describe);
    METRICS.iter().for_each(begin_at_zero);
    for operation in operations::catalog() {
        counter!("http_requests_total", "operation" => operation.id, "status" => "5xx").absolute(0);
    }
    Ok(handle)
}

/// Starts sampling, and returns the renderer of the text. The disks of these folders are sampled.
pub fn start(
    handle: PrometheusHandle,
    app: &App,
    folders: Vec<PathBuf>,
) -> Arc<dyn Fn() -> String + Send + Sync> {
    let engine = app.db().engine_name();
    gauge!("agent_mailbox_info", "version" => env!("CARGO_PKG_VERSION"), "engine" => engine).set(1.0);
    let (sampled, started) = (handle.clone(), Instant::now());
    let supervisor = app.supervisor();
    supervisor.start("process-metrics", move || sample_for_ever(sampled.clone(), started));
    supervisor.start("disk-metrics", move || sample_disks_for_ever(folders.clone()));
    let counted = app.clone();
    supervisor.start("queue-metrics", move || count_for_ever(counted.clone()));
    supervisor.publish_all();
    Arc::new(move || handle.render())
}

fn describe(metric: &Metric) {
    match metric.kind {
        Kind::Counter => describe_counter!(metric.name, metric.help),
        Kind::Gauge => describe_gauge!(metric.name, metric.help),
        Kind::Histogram => describe_histogram!(metric.name, metric.help),
    }
}

/// Creates the series of a metric whose label values are known. Otherwise an alert would miss the first event: a
/// counter that appears with 1 has not increased.
fn begin_at_zero(metric: &Metric) {
    let labels: Vec<Vec<(&str, &str)>> = match metric.labels {
        [] => vec![Vec::new()],
        [label] => label.values.iter().map(|value| vec![(label.name, *value)]).collect(),
        _ => Vec::new(),
    };
    for labels in labels {
        match metric.kind {
            Kind::Counter => counter!(metric.name, &labels).absolute(0),
            Kind::Gauge => gauge!(metric.name, &labels).set(0.0),
            Kind::Histogram => drop(histogram!(metric.name, &labels)),
        }
    }
}

async fn sample_for_ever(handle: PrometheusHandle, started: Instant) {
    let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
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

/// In a task of its own: a network disk may hang, and the recorder's upkeep must go on.
async fn sample_disks_for_ever(folders: Vec<PathBuf>) {
    let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
    let folders: Arc<[PathBuf]> = folders.into();
    loop {
        ticks.tick().await;
        let folders = folders.clone();
        let sample_all = move || folders.iter().for_each(|folder| sample_disk(folder));
        if tokio::task::spawn_blocking(sample_all).await.is_err() {
            return;
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people, and no disk is that exact")]
fn sample_disk(folder: &Path) {
    if let Ok(disk) = rustix::fs::statvfs(folder) {
        let path = folder.display().to_string();
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize) as f64;
        gauge!("disk_free_bytes", "path" => path.clone()).set(bytes(disk.f_bavail));
        gauge!("disk_size_bytes", "path" => path).set(bytes(disk.f_blocks));
    }
}

/// Counts the records in the queues.
#[expect(clippy::cast_precision_loss, reason = "counts and seconds are far below what a float holds")]
async fn count_for_ever(app: App) {
    let mut ticks = tokio::time::interval(COUNT_INTERVAL);
    loop {
        ticks.tick().await;
        match operations::backlog::measure(&app).await {
            Ok(backlog) => {
                for (queue, waiting) in backlog.waiting {
                    gauge!("queue_waiting", "queue" => queue).set(waiting as f64);
                }
                gauge!("outbound_queue_overdue_seconds").set(backlog.outbound_overdue_seconds as f64);
            }
            // The gauges keep their values; the store's failure is reported elsewhere.
            Err(error) => {
                let delay_ms = COUNT_INTERVAL.as_millis();
                tracing::debug!(%error, delay_ms, "counting the queues failed; retrying");
            }
        }
    }
}

/// The resident memory, from the kernel.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024.0)
}
