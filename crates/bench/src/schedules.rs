//! Many scheduled messages due in the same second: how long until all are sent, how late they are, and how much
//! reads slow down.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use operations::ports::{Clock as _, SystemClock};

use crate::{
    load::{End, Load, Outcome},
    measured_store::Engine,
    options::Options,
    program::{self, Disk, RunningProgram},
    relay::{prepare, relay_settings},
    report::{Figure, Target},
    send,
    sink::Sink,
    stats::percentile,
    turns,
};

const SECONDS: f64 = 30.0;
const CONNECTIONS: usize = 32;
const READERS: usize = 4;
/// Minimum schedules created per second.
const MADE_PER_SECOND: u64 = 100;
/// The duration of one sample of the readers.
const SAMPLE_DURATION: Duration = Duration::from_millis(500);

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let program = program::path(options);
    let mut figures = Vec::new();
    for engine in &options.engines {
        figures.extend(measure_engine(*engine, &program, options).await);
    }
    figures
}

async fn measure_engine(engine: Engine, program: &Path, options: &Options) -> [Figure; 2] {
    let (store, key, mailbox) = prepare(engine).await;
    let sink = Sink::start();
    let running = RunningProgram::start_with(program, &store, Disk::AsItIs, &relay_settings(&sink)).await;
    let count = options.schedules();
    let left = Duration::from_secs(10 + count / MADE_PER_SECOND);
    let due = Instant::now() + left;
    let at = SystemClock.now().plus_seconds(i64::try_from(left.as_secs()).unwrap_or(i64::MAX));
    let fields = format!("\"scheduled_send_at\":\"{at}\",");
    let next_request =
        send::sends(running.address, &key, &mailbox, "scheduled-sends", "ann@remote.test", &fields);
    let load = Load {
        address: running.address,
        connections: CONNECTIONS,
        next_request,
        expected_status: 201,
        processes: Vec::new(),
    };
    load.run(End::AfterRequests(count)).await;
    let request = format!(
        "GET /api/v1/mailboxes/{mailbox}/folders HTTP/1.1\r\nHost: {}\r\nX-API-Key: {key}\r\n\r\n",
        running.address
    );
    let readers = Load::of_one(running.address, READERS, request);
    let calm = readers.run(End::After(Duration::from_secs(3))).await;
    assert!(Instant::now() < due, "the schedules were not made in time");
    tokio::time::sleep_until(due.into()).await;
    let wanted = usize::try_from(count).unwrap_or(usize::MAX);
    let mut busy: Vec<Outcome> = Vec::new();
    while sink.count() < wanted {
        assert!(due.elapsed().as_secs_f64() < 10.0 * SECONDS, "only {} messages have left", sink.count());
        busy.push(readers.run(End::After(SAMPLE_DURATION)).await);
    }
    let mut late: Vec<f64> =
        sink.take().iter().map(|at| at.saturating_duration_since(due).as_secs_f64()).collect();
    running.stop();
    store.remove().await;
    assert_eq!(late.len(), wanted, "each left once");
    let mut reads = turns::meanwhile("reads while schedules leave : before", engine, &calm, &busy);
    reads.notes.push(format!("{READERS} readers, one call after the other each"));
    [all_out(engine, &mut late), reads]
}

fn all_out(engine: Engine, late: &mut [f64]) -> Figure {
    let last = percentile(late, 1.0);
    Figure {
        what: "the last of all schedules : 30 s",
        engine: engine.name(),
        unit: "s",
        value: last,
        yardstick: SECONDS,
        ratio: last / SECONDS,
        spread: (percentile(late, 0.5) / SECONDS, percentile(late, 0.99) / SECONDS),
        target: Some(Target::AtMost(1.0)),
        notes: vec![format!(
            "{} schedules due at once; half of them late by {:.1} s at most, 99 % by {:.1} s",
            late.len(),
            percentile(late, 0.5),
            percentile(late, 0.99)
        )],
    }
}
