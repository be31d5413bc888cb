//! The response of `/readyz`: whether the workers run, and whether the clock is right.

use operations::supervisor::{WorkerState, WorkerStatus};
use serde::Serialize;

/// The response of `/readyz`. Errors of workers are only in the log, because this route is public.
#[derive(Serialize)]
pub(super) struct Readiness {
    /// `ready`, or `degraded` while a worker is down or the machine's clock is wrong.
    status: &'static str,
    /// How far the machine's clock is ahead of the database's, if that is a fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_ahead_seconds: Option<i64>,
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
    pub(super) fn of(workers: Vec<WorkerStatus>, clock_ahead_seconds: Option<i64>) -> Self {
        let is_running = |worker: &WorkerStatus| worker.state == WorkerState::Running;
        let is_well = clock_ahead_seconds.is_none() && workers.iter().all(is_running);
        let status = if is_well { "ready" } else { "degraded" };
        let show = |worker: WorkerStatus| {
            let (state, restart_in_ms) = match worker.state {
                WorkerState::Running => ("running", None),
                WorkerState::Restarting(pause) => ("restarting", Some(pause.as_millis())),
                WorkerState::Failed => ("failed", None),
            };
            let WorkerStatus { name, restarts, failures, .. } = worker;
            WorkerReadiness { name, state, restarts, failures, restart_in_ms }
        };
        Self { status, clock_ahead_seconds, workers: workers.into_iter().map(show).collect() }
    }
}
