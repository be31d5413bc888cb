//! For tests of the program: makes a worker panic. Release builds do not contain it.
//!
//! `AGENT_MAILBOX_TEST_WORKER_PANICS=queue:3:500` makes the worker `queue` panic at its first three starts, with a
//! first restart delay of 500 milliseconds.

use operations::supervisor::{RestartPolicy, Supervisor};

/// The restart policy of workers: the default, unless a test sets another.
pub fn restart_policy() -> RestartPolicy {
    #[cfg(debug_assertions)]
    if let Some((_, _, first_pause)) = wanted() {
        return RestartPolicy { first_pause, max_pause: first_pause, ..RestartPolicy::default() };
    }
    RestartPolicy::default()
}

/// Makes a worker panic, if a test asks for it.
#[cfg_attr(not(debug_assertions), expect(unused_variables, reason = "there are no faults in a release"))]
pub fn inject(supervisor: &Supervisor) {
    #[cfg(debug_assertions)]
    if let Some((worker, times, _)) = wanted() {
        supervisor.inject_panics(&worker, times);
    }
}

/// The worker that panics, how often, and the restart delay.
#[cfg(debug_assertions)]
fn wanted() -> Option<(String, u32, std::time::Duration)> {
    let value = std::env::var("AGENT_MAILBOX_TEST_WORKER_PANICS").ok()?;
    let mut parts = value.split(':');
    let (worker, times, pause) = (parts.next()?, parts.next()?, parts.next()?);
    Some((worker.to_owned(), times.parse().ok()?, std::time::Duration::from_millis(pause.parse().ok()?)))
}
