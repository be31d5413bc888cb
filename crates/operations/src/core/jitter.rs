//! Jittered delays, so that nodes and retries do not run in lockstep.

use std::time::Duration;

use crate::core::app::App;

/// The given delay, plus or minus a fifth.
pub(crate) fn jitter(app: &App, about: Duration) -> Duration {
    let mut random = [0];
    app.entropy().fill(&mut random);
    about.mul_f64(0.8 + 0.4 * f64::from(random[0]) / 255.0)
}

/// The same in whole seconds.
pub(crate) fn jitter_seconds(app: &App, about: i64) -> i64 {
    let jittered = jitter(app, Duration::from_secs(about.unsigned_abs()));
    i64::try_from(jittered.as_secs()).unwrap_or(i64::MAX)
}
