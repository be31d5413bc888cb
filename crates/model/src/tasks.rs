//! Tasks that triagers found in mail.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    EmailId, TaskId, Timestamp, TriagerId,
    emails::{named, twenty_five},
};

/// The longest title in characters.
pub const MAX_TITLE_CHARS: usize = 200;
/// How many open tasks a mailbox can have; more are not noted.
pub const MAX_OPEN_TASKS: i64 = 1000;

named! {
    /// The priority of a task.
    TaskPriority {
        /// Low.
        Low "low",
        /// Normal.
        Normal "normal",
        /// High.
        High "high",
    }
}

named! {
    /// The status of a task.
    TaskStatus {
        /// Open.
        Open "open",
        /// Done.
        Done "done",
        /// Dismissed.
        Dismissed "dismissed",
    }
}

/// A task that a triager found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// What there is to do. Written by a model from untrusted mail.
    pub title: String,
    /// The due date; null if the email does not name one.
    pub due_at: Option<Timestamp>,
    /// Its priority.
    pub priority: TaskPriority,
    /// Its status.
    pub status: TaskStatus,
    /// The email it was found in.
    pub email_id: EmailId,
    /// The triager that found it.
    pub triager_id: TriagerId,
    /// When it was found.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A page of tasks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TaskPage {
    /// The tasks, newest first.
    pub tasks: Vec<Task>,
    /// Whether more follow.
    pub has_more: bool,
    /// The cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Which tasks to list.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct TaskQuery {
    /// Only tasks of this status.
    #[serde(default)]
    pub status: Option<TaskStatus>,
    /// Items per page.
    #[garde(range(min = 1, max = 100))]
    #[serde(default = "twenty_five")]
    pub limit: i64,
    /// The `next_cursor` of the previous page.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub cursor: Option<String>,
}

/// Changes to a task. Omitted fields stay as they are.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct TaskChange {
    /// What there is to do.
    #[garde(length(chars, min = 1, max = MAX_TITLE_CHARS), inner(custom(one_line)))]
    #[serde(default)]
    pub title: Option<String>,
    /// The due date.
    #[serde(default)]
    pub due_at: Option<Timestamp>,
    /// Its priority.
    #[serde(default)]
    pub priority: Option<TaskPriority>,
    /// Its status.
    #[serde(default)]
    pub status: Option<TaskStatus>,
}

fn one_line(text: &str, (): &()) -> garde::Result {
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        return Err(garde::Error::new("must be one line that is not empty"));
    }
    Ok(())
}
