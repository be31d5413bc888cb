//! The supervisor by a clock that tests move.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// When a worker was started, by the paused clock.
#[derive(Clone, Default)]
struct Starts(Arc<Mutex<Vec<Instant>>>);

impl Starts {
    fn note(&self) {
        lock(&self.0).push(Instant::now());
    }

    /// The times between one start and the next, in milliseconds.
    fn pauses(&self) -> Vec<u128> {
        lock(&self.0).windows(2).map(|two| (two[1] - two[0]).as_millis()).collect()
    }
}

fn fails(message: String) -> impl Future<Output = ()> {
    std::future::poll_fn::<(), _>(move |_| panic!("{message}"))
}

fn supervisor() -> Arc<Supervisor> {
    Arc::new(Supervisor::new(RestartPolicy::default()))
}

fn only(supervisor: &Supervisor) -> WorkerStatus {
    supervisor.statuses().pop().expect("a worker")
}

// rules: CLI-16, CLI-17
#[tokio::test(start_paused = true)]
async fn restarts_come_later_and_later_until_the_worker_is_given_up() {
    let (supervisor, starts) = (supervisor(), Starts::default());
    let noted = starts.clone();
    let worker = supervisor.start("broken", move || {
        noted.note();
        fails("no luck".to_owned())
    });
    let failed = supervisor.failed().await;
    assert_eq!(failed, FailedWorker { name: "broken", error: "panicked: no luck".to_owned() });
    let expected = [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600];
    assert_eq!(starts.pauses(), expected, "ten starts, and no eleventh");
    worker.await.expect("the supervisor itself does not panic");
    let status = only(&supervisor);
    assert_eq!((status.state, status.restarts, status.failures), (WorkerState::Failed, 9, 10));
}

// rules: CLI-16
#[tokio::test(start_paused = true)]
async fn a_worker_that_returns_is_restarted_and_shown() {
    let (supervisor, starts) = (supervisor(), Starts::default());
    let noted = starts.clone();
    let worker = supervisor.start("short", move || noted.note_and_return());
    tokio::time::sleep(Duration::from_millis(50)).await;
    let status = only(&supervisor);
    assert_eq!(status.state, WorkerState::Restarting(Duration::from_millis(50)));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(only(&supervisor).restarts, 2);
    assert_eq!(starts.pauses(), [100, 200]);
    worker.abort();
}

impl Starts {
    fn note_and_return(&self) -> std::future::Ready<()> {
        self.note();
        std::future::ready(())
    }
}

// rules: CLI-16
#[tokio::test(start_paused = true)]
async fn a_minute_of_good_running_makes_up_for_earlier_failures() {
    let (supervisor, starts, runs) = (supervisor(), Starts::default(), Arc::new(AtomicU32::new(0)));
    let noted = starts.clone();
    let worker = supervisor.start("moody", move || {
        noted.note();
        let run = runs.fetch_add(1, Ordering::SeqCst);
        async move {
            // Eight failures at once, one after a good while, and the same again.
            if run % 9 == 8 {
                tokio::time::sleep(Duration::from_secs(61)).await;
            }
            fails(format!("run {run}")).await;
        }
    });
    while starts.pauses().len() < 40 {
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    assert_eq!(starts.pauses()[7..10], [12_800, 61_100, 200]);
    assert!(only(&supervisor).failures < 10);
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn failures_are_forgotten_while_a_worker_runs_well() {
    let supervisor = supervisor();
    let runs = AtomicU32::new(0);
    let worker = supervisor.start("once", move || {
        let first = runs.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            assert!(!first, "the first run");
            std::future::pending::<()>().await;
        }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((only(&supervisor).failures, only(&supervisor).restarts), (1, 1));
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!((only(&supervisor).failures, only(&supervisor).restarts), (0, 1));
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn what_is_finished_or_stopped_is_not_restarted() {
    let supervisor = supervisor();
    supervisor.start("finished", || async { Exit::Finished }).await.expect("no panic");
    assert_eq!(supervisor.statuses(), []);
    let worker = supervisor.start("stopped", || fails("no luck".to_owned()));
    tokio::time::sleep(Duration::from_secs(20)).await;
    let stopped = Instant::now();
    supervisor.stop();
    worker.await.expect("no panic");
    assert_eq!((supervisor.statuses(), stopped.elapsed()), (Vec::new(), Duration::ZERO));
}

#[tokio::test]
async fn a_claim_is_released_unless_its_work_is_done() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    for (name, done) in [("done", true), ("abandoned", false)] {
        let tell = tell.clone();
        let claim = ClaimGuard::new(move || async move { tell.send(name).expect("a listener") });
        if done {
            claim.done();
        }
    }
    drop(tell);
    assert_eq!((told.recv().await, told.recv().await), (Some("abandoned"), None));
}

#[tokio::test]
async fn a_panic_over_one_item_is_its_failure() {
    let failed = isolate("items", async { panic!("item {}", 7) }).await as Result<()>;
    assert_eq!(failed.expect_err("a failure").kind(), crate::core::error::ErrorKind::Internal);
    assert_eq!(isolate("items", async { Ok(1) }).await.expect("a success"), 1);
}
