//! `doctor`: looks at everything the service needs, changes nothing, and says one line about each.

mod checks;

use std::{fmt::Display, process::ExitCode};

use super::in_runtime;
use crate::{
    config::{Config, Sources},
    failure::Result,
    output,
};

/// What was found so far.
#[derive(Default)]
struct Report {
    good: u64,
    failures: u64,
    warnings: u64,
}

impl Report {
    /// Something is right.
    fn ok(&mut self, text: impl Display) {
        self.good += 1;
        output::line(format!("ok    {text}"));
    }

    /// Something works, and should be looked at.
    fn warn(&mut self, text: impl Display) {
        self.warnings += 1;
        output::line(format!("warn  {text}"));
    }

    /// Something does not work.
    fn fail(&mut self, text: impl Display) {
        self.failures += 1;
        output::line(format!("FAIL  {text}"));
    }
}

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
    Ok(conclude(&report))
}

fn conclude(report: &Report) -> ExitCode {
    let (warnings, failures) = (report.warnings, report.failures);
    output::line(format!(
        "\n{} right, {}, {}",
        report.good,
        output::plural(warnings, "warning"),
        output::plural(failures, "failure")
    ));
    if report.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
