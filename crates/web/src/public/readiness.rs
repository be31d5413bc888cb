//! The response of `/readyz`: whether the workers run.

use operations::supervisor::{WorkerState, WorkerStatus};
use serde::Serialize;

/// The response of `/readyz`. Errors of workers are only in the log, because this route is public.
#[derive(Serialize)]
pub(super) struct Readiness {
    /// `ready`, or `degraded` while a worker is down.
    status: &'static str,
    workers: Vec<WorkerReadiness>,
}

#[derive(Serialize)]
struct WorkerReadiness {
    name: &'static str,
    /// `running`, `restarting` or `failed`.
    state: &'static str,
    /// Since the process started.
    restarts: u64,
    /// Failures in a row.
    failures: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    restart_in_ms: Option<u128>,
}

impl Readiness {
    pub(super) fn of(workers: Vec<WorkerStatus>) -> Self {
        let is_running = |worker: &WorkerStatus| worker.state == WorkerState::Running;
        let status = if workers.iter().all(is_running) { "ready" } else { "degraded" };
        let show = |worker: WorkerStatus| {
            let (state, restart_in_ms) = match worker.state {
                WorkerState::Running => ("running", None),
                WorkerState::Restarting(pause) => ("restarting", Some(pause.as_millis())),
                WorkerState::Failed => ("failed", None),
            };
            let WorkerStatus { name, restarts, failures, .. } = worker;
            WorkerReadiness { name, state, restarts, failures, restart_in_ms }
        };
        Self { status, workers: workers.into_iter().map(show).collect() }
    }
}
