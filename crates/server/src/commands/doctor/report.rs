//! What `doctor` says: one line about each thing that it looked at, and the counts at the end.

use std::{fmt::Display, process::ExitCode};

use crate::output;

/// What was found so far.
#[derive(Default)]
pub(super) struct Report {
    good: u64,
    failures: u64,
    warnings: u64,
}

impl Report {
    /// Something is right.
    pub(super) fn ok(&mut self, text: impl Display) {
        self.good += 1;
        output::line(format!("ok    {text}"));
    }

    /// Something works, and should be looked at.
    pub(super) fn warn(&mut self, text: impl Display) {
        self.warnings += 1;
        output::line(format!("warn  {text}"));
    }

    /// Something does not work.
    pub(super) fn fail(&mut self, text: impl Display) {
        self.failures += 1;
        output::line(format!("FAIL  {text}"));
    }

    /// Writes the counts, and gives the exit code that follows from them.
    pub(super) fn conclude(&self) -> ExitCode {
        let (warnings, failures) = (self.warnings, self.failures);
        output::line(format!(
            "\n{} right, {}, {}",
            self.good,
            output::plural(warnings, "warning"),
            output::plural(failures, "failure")
        ));
        if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
