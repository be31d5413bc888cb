//! The output of `doctor`: one line per check and the counts at the end, or all of it as JSON.

use std::{fmt::Display, process::ExitCode};

use serde::Serialize;
use serde_json::json;

use crate::{
    failure::Result,
    output::{self, Color},
};

/// The results so far.
#[derive(Default)]
pub(super) struct Report {
    checks: Vec<Check>,
}

/// One result.
#[derive(Serialize)]
struct Check {
    status: Status,
    /// What was checked.
    #[serde(rename = "check")]
    name: &'static str,
    message: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Ok,
    Warn,
    Fail,
}

impl Report {
    /// A check passed.
    pub(super) fn ok(&mut self, check: &'static str, message: impl Display) {
        self.add(Status::Ok, check, &message);
    }

    /// Something works, but needs attention.
    pub(super) fn warn(&mut self, check: &'static str, message: impl Display) {
        self.add(Status::Warn, check, &message);
    }

    /// A check failed.
    pub(super) fn fail(&mut self, check: &'static str, message: impl Display) {
        self.add(Status::Fail, check, &message);
    }

    /// People read each result as soon as it is known.
    fn add(&mut self, status: Status, check: &'static str, message: &impl Display) {
        if !output::is_json() {
            let word = match status {
                Status::Ok => output::paint("ok  ", Color::Green),
                Status::Warn => output::paint("warn", Color::Yellow),
                Status::Fail => output::paint("FAIL", Color::Red),
            };
            output::line(format!("{word}  {check}: {message}"));
        }
        self.checks.push(Check { status, name: check, message: message.to_string() });
    }

    fn count(&self, status: Status) -> u64 {
        self.checks.iter().filter(|check| check.status == status).count() as u64
    }

    /// Prints the counts, and returns the exit code.
    pub(super) fn conclude(&self) -> Result<ExitCode> {
        let (passed, warnings) = (self.count(Status::Ok), self.count(Status::Warn));
        let failures = self.count(Status::Fail);
        let value = json!({
            "ok": failures == 0, "passed": passed, "warnings": warnings, "failures": failures,
            "checks": self.checks,
        });
        output::result(&value, || {
            let warnings = output::plural(warnings, "warning");
            format!("\n{passed} passed, {warnings}, {}", output::plural(failures, "failure"))
        })?;
        Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
