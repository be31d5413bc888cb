//! Work that nobody waits for, done while the service has nothing better to do.
//!
//! A low priority alone is not enough: the thread still gets every moment in which the others wait for the disk, and
//! takes the caches and the other half of the core from them. So it pauses while the rest of the process is busy, or while
//! others on the machine, such as PostgreSQL, keep it waiting for a core; but never for good: it keeps a tenth of its time.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

/// The service is busy when it uses more than this share of all cores.
const BUSY_SHARE: f64 = 0.1;
/// While it is, a step is followed by a pause of so many times the CPU time that it took.
const PAUSES: u32 = 9;
/// Others are busy when a step waited for a core for more than this share of its time.
const WAITING_SHARE: f64 = 0.1;
/// How often a pause looks whether the service is still busy.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Work of this thread that pauses after each step while the service is busy.
pub(super) struct IdleTime {
    cores: f64,
    step_began: Moment,
}

/// What the process and this thread have used up to a moment.
#[derive(Clone, Copy)]
struct Moment {
    at: Instant,
    process: Duration,
    thread: Duration,
}

impl IdleTime {
    /// Begins the first step.
    pub(super) fn begin() -> Self {
        #[expect(clippy::cast_precision_loss, reason = "no machine has 2^52 cores")]
        let cores = thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        Self { cores, step_began: Moment::now() }
    }

    /// Ends a step: waits as long as the service is busy, but only for its share. The next step begins.
    pub(super) fn pause(&mut self) {
        let mut last = Moment::now();
        let mut left = last.thread.saturating_sub(self.step_began.thread) * PAUSES;
        // While this thread sleeps, it cannot see whether it would wait.
        let waited = has_waited(self.step_began, last);
        let mut busy = waited || is_busy(self.step_began, last, self.cores);
        while busy && !left.is_zero() {
            let pause = left.min(LOOK_INTERVAL);
            thread::sleep(pause);
            left -= pause;
            let now = Moment::now();
            busy = waited || is_busy(last, now, self.cores);
            last = now;
        }
        self.step_began = last;
    }
}

impl Moment {
    fn now() -> Self {
        Self {
            at: Instant::now(),
            process: cpu_time(ClockId::ProcessCPUTime),
            thread: cpu_time(ClockId::ThreadCPUTime),
        }
    }
}

/// Whether the other threads used much of the machine between two moments.
fn is_busy(from: Moment, to: Moment, cores: f64) -> bool {
    let used = |moment: Moment| moment.process.saturating_sub(moment.thread);
    let others = used(to).saturating_sub(used(from)).as_secs_f64();
    others > to.at.duration_since(from.at).as_secs_f64() * cores * BUSY_SHARE
}

/// Whether this thread, which only computes, waited for a core much of the time between two moments.
fn has_waited(from: Moment, to: Moment) -> bool {
    let (all, computing) = (to.at.duration_since(from.at), to.thread.saturating_sub(from.thread));
    all.saturating_sub(computing).as_secs_f64() > all.as_secs_f64() * WAITING_SHARE
}

fn cpu_time(clock: ClockId) -> Duration {
    // Neither clock is ever before its beginning.
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(began: Moment, [wall, process, thread]: [u64; 3]) -> Moment {
        Moment {
            at: began.at + Duration::from_millis(wall),
            process: began.process + Duration::from_millis(process),
            thread: began.thread + Duration::from_millis(thread),
        }
    }

    #[test]
    fn only_the_other_threads_make_the_service_busy() {
        let began = Moment::now();
        assert!(!is_busy(began, after(began, [100, 100, 100]), 2.0), "this thread alone");
        assert!(!is_busy(began, after(began, [100, 115, 100]), 2.0), "a thirteenth of the machine");
        assert!(is_busy(began, after(began, [100, 140, 100]), 2.0), "a fifth of it");
        assert!(!is_busy(began, after(began, [100, 140, 100]), 16.0), "the same on a larger one");
    }

    #[test]
    fn a_step_that_waits_for_a_core_makes_others_busy() {
        let began = Moment::now();
        assert!(!has_waited(began, after(began, [100, 100, 100])));
        assert!(!has_waited(began, after(began, [100, 95, 95])));
        assert!(has_waited(began, after(began, [100, 80, 80])));
    }
}
