//! Runs of triagers: what led to them, how far they are, and what came of each task.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kinds::{SourceKind, TriagerTaskKind};
use crate::{EmailId, TaskId, Timestamp, TriagerId, TriagerRunId, emails::named};

named! {
    /// How far a run is.
    RunStatus {
        /// It is at work.
        Running "RUNNING",
        /// It did what it was to do.
        Succeeded "SUCCEEDED",
        /// The model gave no answer that could be used.
        Failed "FAILED",
        /// There was nothing to do, or it was not allowed; it cost nothing.
        Skipped "SKIPPED",
    }
}

/// Which mail a triager is to look at now.
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
    /// What led to it.
    pub source: RunSource,
    /// How far it is.
    pub status: RunStatus,
    /// What came of it, in one or two sentences. Written by a model from untrusted mail.
    pub summary: String,
    /// What came of each task.
    pub tasks: Vec<RunTask>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended; null while it is at work.
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

/// What led to a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunSource {
    /// What happened.
    pub kind: SourceKind,
    /// The mail.
    pub email_id: EmailId,
}

/// What came of a task of a triager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunTask {
    /// The task.
    pub kind: TriagerTaskKind,
    /// Whether it was done.
    pub done: bool,
    /// Why not.
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
    /// `notify`: what was told. Written by a model from untrusted mail.
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
    /// How many.
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
