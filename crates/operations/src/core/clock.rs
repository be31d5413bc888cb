//! The clock that the nodes of a service share: the database's. What one node decides is seen by the others: claims,
//! deadlines, expiry, request windows, ids. A machine whose clock is wrong would steal claims, send early and delete what
//! is still needed, so on PostgreSQL every node follows the one clock that all of them can read.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use model::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use store::{Db, SystemTx, system};

use crate::core::{
    error::Result,
    ports::{Clock, ClockReading},
};

/// A clock that is further from the database's is named.
pub const MAX_CLOCK_SKEW: Duration = Duration::from_secs(5);
/// A correction of the followed clock that is worth a line in the log: the database's clock was set, or another server is
/// the primary now.
const MAX_SILENT_CORRECTION_MICROS: i64 = 1_000_000;

/// Follows the database's clock.
///
/// Between two readings it goes on by itself and independently of the machine's clock, so that it does not matter when
/// that one is set.
pub struct DatabaseClock {
    machine: Arc<dyn Clock>,
    /// Microseconds from the time since the machine was started to the database's time.
    offset: AtomicI64,
    /// Microseconds by which the machine's clock is ahead of the database's.
    machine_ahead: AtomicI64,
}

impl DatabaseClock {
    /// A clock that follows the database's; on SQLite, where no other process shares the store, the machine's own.
    #[crate::boxed]
    pub async fn start(db: &Db, machine: Arc<dyn Clock>) -> Result<Arc<dyn Clock>> {
        let offset = machine.now().as_micros().saturating_sub(micros_since_boot());
        let clock =
            Arc::new(Self { machine: machine.clone(), offset: offset.into(), machine_ahead: 0.into() });
        let reader = clock.clone();
        let reading = db.system_read(async move |tx| read(tx, &*reader).await).await?;
        let Some(reading) = reading else { return Ok(machine) };
        // Half of the way that the question and its answer took: from now on only what is certainly wrong is corrected.
        let middle = reading.before.as_micros().midpoint(reading.after.as_micros());
        clock.offset.fetch_add(reading.database.as_micros() - middle, Ordering::AcqRel);
        clock.note_machine(reading.machine_ahead());
        Ok(clock)
    }

    /// Records how far the machine's clock is off, and says so when that begins or ends.
    fn note_machine(&self, ahead: i64) {
        let is_off = |micros: i64| Duration::from_micros(micros.unsigned_abs()) > MAX_CLOCK_SKEW;
        let before = self.machine_ahead.swap(ahead, Ordering::AcqRel);
        match (is_off(before), is_off(ahead)) {
            (false, true) => tracing::warn!(
                ahead_seconds = ahead / 1_000_000,
                "the clock of this machine differs from the database's, which is used instead; operator action needed: \
                 synchronise both with NTP"
            ),
            (true, false) => tracing::info!("the clock of this machine agrees with the database's again"),
            _ => {}
        }
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(micros_since_boot().saturating_add(self.offset.load(Ordering::Acquire)))
    }

    fn machine_now(&self) -> Timestamp {
        self.machine.now()
    }

    fn machine_ahead(&self) -> i64 {
        self.machine_ahead.load(Ordering::Acquire)
    }

    fn correct(&self, reading: &ClockReading) {
        self.note_machine(reading.machine_ahead());
        let ahead = reading.ahead();
        if ahead == 0 {
            return;
        }
        self.offset.fetch_sub(ahead, Ordering::AcqRel);
        if ahead.abs() > MAX_SILENT_CORRECTION_MICROS {
            let set_forward_ms = -ahead / 1000;
            tracing::warn!(
                set_forward_ms,
                "the database's clock was set, or another server has taken over; following it"
            );
        }
    }
}

/// Reads the database's clock, and the process's own right before and after it; `None` on SQLite.
pub(crate) async fn read(tx: &mut SystemTx, clock: &dyn Clock) -> store::Result<Option<ClockReading>> {
    let (before, machine_before) = (clock.now(), clock.machine_now());
    let database = system::store_clock(tx).await?;
    let (after, machine_after) = (clock.now(), clock.machine_now());
    Ok(database.map(|database| ClockReading { database, before, after, machine_before, machine_after }))
}

/// Time that passes also while the machine sleeps, and that nobody can set.
fn micros_since_boot() -> i64 {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    // It is never before its beginning.
    let since = Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Machine(AtomicI64);

    impl Clock for Machine {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.0.load(Ordering::Relaxed))
        }
    }

    fn clock_at(now: i64) -> DatabaseClock {
        DatabaseClock {
            machine: Arc::new(Machine(0.into())),
            offset: (now - micros_since_boot()).into(),
            machine_ahead: 0.into(),
        }
    }

    fn reading(database: i64, before: i64, after: i64) -> ClockReading {
        let at = Timestamp::from_micros;
        ClockReading {
            database: at(database),
            before: at(before),
            after: at(after),
            machine_before: at(before),
            machine_after: at(after),
        }
    }

    #[test]
    fn a_reading_that_took_long_corrects_only_what_is_certainly_wrong() {
        assert_eq!(reading(150, 100, 200).ahead(), 0, "it may be right");
        assert_eq!((reading(90, 100, 200).ahead(), reading(230, 100, 200).ahead()), (10, -30));
    }

    #[test]
    fn it_follows_the_database_whatever_the_machine_says() {
        const HOUR: i64 = 3_600_000_000;
        let clock = clock_at(10 * HOUR);
        let is_near = |wanted: i64| (clock.now().as_micros() - wanted).abs() < HOUR / 60;
        assert!(is_near(10 * HOUR));
        clock.correct(&reading(12 * HOUR, 10 * HOUR, 10 * HOUR + 5));
        assert!(is_near(12 * HOUR));
        assert_eq!(clock.machine_ahead(), -2 * HOUR + 5);
        clock.correct(&reading(11 * HOUR, 12 * HOUR, 12 * HOUR + 5));
        assert!(is_near(11 * HOUR));
    }
}
