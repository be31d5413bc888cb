//! Work that nobody waits for, done while the service has nothing better to do.
//!
//! A low priority alone is not enough: the thread still gets every moment in which the others wait for the disk, and
//! takes the caches and the other half of the core from them. So it pauses while the rest of the process is busy, but
//! never for good: it keeps a tenth of its time.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

/// The service is busy when it uses more than this share of all cores.
const BUSY_SHARE: f64 = 0.1;
/// While it is, a step is followed by a pause of so many times the CPU time that it took.
const PAUSES: u32 = 9;
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
        let mut busy = is_busy(self.step_began, last, self.cores);
        while busy && !left.is_zero() {
            let pause = left.min(LOOK_INTERVAL);
            thread::sleep(pause);
            left -= pause;
            let now = Moment::now();
            busy = is_busy(last, now, self.cores);
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
}
