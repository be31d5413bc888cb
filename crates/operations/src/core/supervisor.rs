//! Keeps workers running: one that panics or returns is restarted with growing delays, and one that keeps failing
//! ends the process, so that the process manager restarts it.
//!
//! Work on single items is isolated from its worker ([`isolate`]): a message that makes code panic fails like any
//! other, without taking down its worker or the next message.

use std::{
    any::Any,
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::FutureExt;
use tokio::{sync::watch, task::JoinHandle, time::Instant};

use crate::core::{
    error::{Error, Result},
    lock::lock,
};

/// The restart policy of workers.
#[derive(Clone, Copy, Debug)]
pub struct RestartPolicy {
    /// The pause after the first failure; each further failure in a row doubles it.
    pub first_pause: Duration,
    /// The longest pause.
    pub max_pause: Duration,
    /// A worker that ran this long has recovered: its failures are reset.
    pub recovered_after: Duration,
    /// Consecutive failures after which a worker is given up.
    pub max_failures: u32,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            first_pause: Duration::from_millis(100),
            max_pause: Duration::from_secs(30),
            recovered_after: Duration::from_mins(1),
            max_failures: 10,
        }
    }
}

impl RestartPolicy {
    /// The pause after a number of failures in a row.
    fn pause(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first_pause.saturating_mul(1 << doublings).min(self.max_pause)
    }
}

/// How a worker ended without a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It has nothing left to do: the process stops, or its resource is gone.
    Finished,
    /// It should have continued.
    Unexpected,
}

impl From<()> for Exit {
    /// A worker that should run as long as the process.
    fn from((): ()) -> Self {
        Self::Unexpected
    }
}

/// The state of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// Running.
    Running,
    /// Failed; restarts after this delay.
    Restarting(Duration),
    /// Given up; the process is about to stop.
    Failed,
}

/// The status of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Its name.
    pub name: &'static str,
    /// Its state.
    pub state: WorkerState,
    /// Restarts since the process started.
    pub restarts: u64,
    /// Consecutive failures.
    pub failures: u32,
}

/// A worker that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedWorker {
    /// Its name.
    pub name: &'static str,
    /// Its last failure.
    pub error: String,
}

#[derive(Clone, Copy)]
enum State {
    Running { since: Instant },
    Restarting { at: Instant },
    Failed,
}

struct Record {
    state: State,
    restarts: u64,
    failures: u32,
}

type Work = Pin<Box<dyn Future<Output = Exit> + Send>>;

/// Runs the workers of a process.
pub struct Supervisor {
    policy: RestartPolicy,
    workers: Mutex<BTreeMap<&'static str, Record>>,
    /// Whether the process is stopping: nothing is restarted any more.
    stopping: watch::Sender<bool>,
    failed: watch::Sender<Option<FailedWorker>>,
    /// Panics to inject for tests, by worker. Not in release builds.
    #[cfg(debug_assertions)]
    faults: watch::Sender<BTreeMap<String, u32>>,
}

impl Supervisor {
    /// A supervisor without workers.
    pub fn new(policy: RestartPolicy) -> Self {
        Self {
            policy,
            workers: Mutex::default(),
            stopping: watch::Sender::new(false),
            failed: watch::Sender::new(None),
            #[cfg(debug_assertions)]
            faults: watch::Sender::default(),
        }
    }

    /// Starts a worker, with a new future for each restart. Aborting the handle stops it for good.
    pub fn start<F, W>(self: &Arc<Self>, name: &'static str, work: F) -> JoinHandle<()>
    where
        F: Fn() -> W + Send + Sync + 'static,
        W: Future<Output: Into<Exit>> + Send + 'static,
    {
        let begin = move || -> Work {
            let work = work();
            Box::pin(async move { work.await.into() })
        };
        tokio::spawn(self.clone().supervise(name, begin))
    }

    async fn supervise(self: Arc<Self>, name: &'static str, begin: impl Fn() -> Work + Send + Sync) {
        let mut stopping = self.stopping.subscribe();
        let (mut failures, mut restarts) = (0, 0);
        loop {
            let since = Instant::now();
            self.note(name, Record { state: State::Running { since }, restarts, failures });
            let error = match self.run(name, &begin).await {
                Ok(Exit::Finished) => return self.forget(name),
                Ok(Exit::Unexpected) => "it returned".to_owned(),
                Err(panic) => format!("panicked: {panic}"),
            };
            if *self.stopping.borrow() {
                return self.forget(name);
            }
            failures = if since.elapsed() >= self.policy.recovered_after { 1 } else { failures + 1 };
            if failures >= self.policy.max_failures {
                self.note(name, Record { state: State::Failed, restarts, failures });
                tracing::error!(worker = name, error, failures, "worker failed; giving up");
                self.failed.send_replace(Some(FailedWorker { name, error }));
                return;
            }
            let pause = self.policy.pause(failures);
            let at = Instant::now() + pause;
            self.note(name, Record { state: State::Restarting { at }, restarts, failures });
            tracing::error!(
                worker = name,
                error,
                failures,
                delay_ms = pause.as_millis(),
                "worker failed; restarting"
            );
            tokio::select! {
                () = tokio::time::sleep_until(at) => {}
                _ = stopping.wait_for(|stopping| *stopping) => return self.forget(name),
            }
            restarts += 1;
            metrics::counter!("worker_restarts_total", "worker" => name).increment(1);
        }
    }

    /// Runs a worker once, and returns how it ended.
    async fn run(&self, name: &'static str, begin: impl Fn() -> Work) -> Result<Exit, String> {
        // Some workers take their first steps before their future is polled.
        let work = async { begin().await };
        #[cfg(debug_assertions)]
        let work = async {
            tokio::select! {
                exit = work => exit,
                exit = self.injected_panic(name) => exit,
            }
        };
        #[cfg(not(debug_assertions))]
        let _ = name;
        catch_panic(work).await
    }

    fn note(&self, name: &'static str, record: Record) {
        lock(&self.workers).insert(name, record);
        self.publish(name);
    }

    fn forget(&self, name: &'static str) {
        lock(&self.workers).remove(name);
        self.publish(name);
    }

    /// Publishes the metrics of one worker.
    fn publish(&self, name: &'static str) {
        let running =
            lock(&self.workers).get(name).map(|record| matches!(record.state, State::Running { .. }));
        metrics::gauge!("worker_up", "worker" => name).set(f64::from(u8::from(running == Some(true))));
        metrics::counter!("worker_restarts_total", "worker" => name).increment(0);
    }

    /// Publishes the metrics of all workers, for those started before metrics were collected.
    pub fn publish_all(&self) {
        let names: Vec<&'static str> = lock(&self.workers).keys().copied().collect();
        for name in names {
            self.publish(name);
        }
    }

    /// The status of all workers, by name.
    pub fn statuses(&self) -> Vec<WorkerStatus> {
        let now = Instant::now();
        let recovered = |since: Instant| now.duration_since(since) >= self.policy.recovered_after;
        let status = |(name, record): (&&'static str, &Record)| {
            let (state, failures) = match record.state {
                State::Running { since } if recovered(since) => (WorkerState::Running, 0),
                State::Running { .. } => (WorkerState::Running, record.failures),
                State::Restarting { at } => {
                    (WorkerState::Restarting(at.saturating_duration_since(now)), record.failures)
                }
                State::Failed => (WorkerState::Failed, record.failures),
            };
            WorkerStatus { name, state, restarts: record.restarts, failures }
        };
        lock(&self.workers).iter().map(status).collect()
    }

    /// Completes with the first worker that is given up.
    #[crate::boxed]
    pub async fn failed(&self) -> FailedWorker {
        let mut failed = self.failed.subscribe();
        loop {
            if let Some(worker) = failed.borrow_and_update().clone() {
                return worker;
            }
            // The sender lives as long as `self`.
            let _ = failed.changed().await;
        }
    }

    /// Stops restarting: the process is stopping.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }
}

#[cfg(debug_assertions)]
impl Supervisor {
    /// For tests: makes a worker panic this many times in a row, now or when it starts.
    pub fn inject_panics(&self, worker: &str, times: u32) {
        self.faults.send_modify(|faults| _ = faults.insert(worker.to_owned(), times));
    }

    async fn injected_panic(&self, name: &str) -> Exit {
        let wanted = |faults: &BTreeMap<String, u32>| faults.get(name).is_some_and(|times| *times > 0);
        // The sender lives as long as `self`.
        let _ = self.faults.subscribe().wait_for(wanted).await;
        self.faults.send_modify(|faults| {
            if let Some(times) = faults.get_mut(name) {
                *times = times.saturating_sub(1);
            }
        });
        panic!("a test made this worker panic");
    }
}

/// Runs the work on one item; a panic is a failure of that item and not of its worker.
pub(crate) fn isolate<T>(
    worker: &'static str,
    work: impl Future<Output = Result<T>>,
) -> impl Future<Output = Result<T>> {
    let outcome = catch_item_panic(worker, work);
    async move {
        let failed = |ItemPanic(panic)| Err(Error::internal(format!("panicked: {panic}")));
        outcome.await.unwrap_or_else(failed)
    }
}

/// The message of a panic while working on one item.
#[derive(Debug)]
pub(crate) struct ItemPanic(String);

/// The same for callers that treat a panic differently from a failure. It is counted and logged here.
pub(crate) fn catch_item_panic<T>(
    worker: &'static str,
    work: impl Future<Output = T>,
) -> impl Future<Output = Result<T, ItemPanic>> {
    // Boxed, since every future around it would hold it twice.
    let work = Box::pin(work);
    async move {
        catch_panic(work).await.map_err(|panic| {
            metrics::counter!("worker_item_panics_total", "worker" => worker).increment(1);
            tracing::error!(worker, error = panic, "item panicked; worker continues");
            ItemPanic(panic)
        })
    }
}

/// Runs some work; fails with the message of a panic. Shared state survives a panic: locks ignore poisoning
/// ([`lock`]), and transactions are rolled back.
async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|payload| panic_message(&*payload))
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "without a message".to_owned())
}

/// A claim that is released when its task ends early, by a panic in its worker or an abort: no other worker could
/// take it over until it expires.
pub(crate) struct ClaimGuard<F: FnOnce() -> W, W: Future<Output = ()> + Send + 'static>(Option<F>);

impl<F: FnOnce() -> W, W: Future<Output = ()> + Send + 'static> ClaimGuard<F, W> {
    /// Guards a claim, with the future that releases it.
    pub(crate) fn new(release: F) -> Self {
        Self(Some(release))
    }

    /// The work is done, or its failure was handled.
    pub(crate) fn done(mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce() -> W, W: Future<Output = ()> + Send + 'static> Drop for ClaimGuard<F, W> {
    fn drop(&mut self) {
        // Without a runtime the process is stopping, and the claim expires.
        if let Some(release) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(release());
        }
    }
}

#[cfg(test)]
mod tests;
