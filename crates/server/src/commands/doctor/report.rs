//! The output of `doctor`: one line per check, and the counts at the end.

use std::{fmt::Display, process::ExitCode};

use crate::output;

/// The results so far.
#[derive(Default)]
pub(super) struct Report {
    good: u64,
    failures: u64,
    warnings: u64,
}

impl Report {
    /// A check passed.
    pub(super) fn ok(&mut self, text: impl Display) {
        self.good += 1;
        output::line(format!("ok    {text}"));
    }

    /// Something works, but needs attention.
    pub(super) fn warn(&mut self, text: impl Display) {
        self.warnings += 1;
        output::line(format!("warn  {text}"));
    }

    /// A check failed.
    pub(super) fn fail(&mut self, text: impl Display) {
        self.failures += 1;
        output::line(format!("FAIL  {text}"));
    }

    /// Prints the counts, and returns the exit code.
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
