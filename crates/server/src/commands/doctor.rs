//! `doctor`: checks everything the service needs, changes nothing, and prints one line for each check.

mod checks;
mod listeners;
mod nodes;
mod report;

use std::process::ExitCode;

use self::report::Report;
use super::runtime::in_runtime;
use crate::{
    config::{Config, Sources},
    failure::Result,
};

pub(super) fn run(sources: &Sources) -> Result<ExitCode> {
    let mut report = Report::default();
    match Config::load(sources) {
        Ok(config) => {
            report.ok("configuration", "no mistakes");
            in_runtime(async {
                checks::all(&config, &mut report).await;
                Ok(())
            })?;
        }
        Err(problems) => {
            for problem in problems {
                report.fail("configuration", problem);
            }
            report.warn("configuration", "correct it first; the other checks need it");
        }
    }
    report.conclude()
}
