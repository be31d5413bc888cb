//! Runs of triagers: what led to them, how far they are, and what came of each task.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kinds::{SourceKind, TriagerTaskKind};
use crate::{EmailId, TaskId, Timestamp, TriagerId, TriagerRunId, emails::named};

named! {
    /// The status of a run.
    RunStatus {
        /// It is running.
        Running "RUNNING",
        /// It finished.
        Succeeded "SUCCEEDED",
        /// The model gave no usable answer.
        Failed "FAILED",
        /// There was nothing to do, or it was not allowed; it cost nothing.
        Skipped "SKIPPED",
    }
}

/// A manual run of a triager.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewTriagerRun {
    /// An email of the mailbox.
    pub email_id: EmailId,
}

/// A run of a triager.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TriagerRun {
    /// Its id.
    pub id: TriagerRunId,
    /// The triager.
    pub triager: RunTriager,
    /// What triggered it.
    pub source: RunSource,
    /// Its status.
    pub status: RunStatus,
    /// A summary in one or two sentences. Written by a model from untrusted mail.
    pub summary: String,
    /// The results of its tasks.
    pub tasks: Vec<RunTask>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended; null while it is running.
    pub finished_at: Option<Timestamp>,
}

/// The triager of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunTriager {
    /// Its id.
    pub id: TriagerId,
    /// Its name at that time.
    pub name: String,
}

/// What triggered a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunSource {
    /// What happened.
    pub kind: SourceKind,
    /// The email.
    pub email_id: EmailId,
}

/// The result of one task of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunTask {
    /// The task.
    pub kind: TriagerTaskKind,
    /// Whether it was done.
    pub done: bool,
    /// Why it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `draft_response`: the draft that was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_id: Option<EmailId>,
    /// `draft_response`: whether the mailbox's settings ask for a person's approval. Nothing sends it in either case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_approval: Option<bool>,
    /// `extract_tasks`: what was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_ids: Option<Vec<TaskId>>,
    /// `label`: the slugs of what was put on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// `notify`: the notification. Written by a model from untrusted mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notification: Option<String>,
}

impl RunTask {
    /// A task that was done.
    pub const fn done(kind: TriagerTaskKind) -> Self {
        Self {
            kind,
            done: true,
            reason: None,
            draft_id: None,
            requires_approval: None,
            task_ids: None,
            labels: None,
            notification: None,
        }
    }

    /// A task that was not done, and why.
    pub fn not_done(kind: TriagerTaskKind, reason: &str) -> Self {
        Self { done: false, reason: Some(reason.to_owned()), ..Self::done(kind) }
    }
}

/// How many runs to show.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecentRunsQuery {
    /// Maximum number.
    #[garde(range(min = 1, max = 20))]
    #[serde(default = "ten")]
    pub limit: i64,
}

const fn ten() -> i64 {
    10
}

/// The runs of a mailbox's triagers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RecentRuns {
    /// The runs, newest first.
    pub runs: Vec<TriagerRun>,
}
