//! `doctor`: checks everything the service needs, changes nothing, and prints one line for each check.

mod checks;
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
            report.ok("configuration: no mistakes");
            in_runtime(async {
                checks::all(&config, &mut report).await;
                Ok(())
            })?;
        }
        Err(problems) => {
            for problem in problems {
                report.fail(format!("configuration: {problem}"));
            }
            report.warn("the rest can be looked at when the configuration is right");
        }
    }
    Ok(report.conclude())
}
