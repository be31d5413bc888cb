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
    /// How much a task presses.
    TaskPriority {
        /// Not at all.
        Low "low",
        /// As most do.
        Normal "normal",
        /// A lot.
        High "high",
    }
}

named! {
    /// What became of a task.
    TaskStatus {
        /// Nothing yet.
        Open "open",
        /// It is done.
        Done "done",
        /// Nobody is going to do it.
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
    /// Until when; null when the mail does not say.
    pub due_at: Option<Timestamp>,
    /// How much it presses.
    pub priority: TaskPriority,
    /// What became of it.
    pub status: TaskStatus,
    /// The mail it was found in.
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
    /// Where the next page begins; null when there is none.
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
    /// How many a page.
    #[garde(range(min = 1, max = 100))]
    #[serde(default = "twenty_five")]
    pub limit: i64,
    /// The `next_cursor` of the page before.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub cursor: Option<String>,
}

/// A change of a task; what is left out stays.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct TaskChange {
    /// What there is to do.
    #[garde(length(chars, min = 1, max = MAX_TITLE_CHARS), inner(custom(one_line)))]
    #[serde(default)]
    pub title: Option<String>,
    /// Until when.
    #[serde(default)]
    pub due_at: Option<Timestamp>,
    /// How much it presses.
    #[serde(default)]
    pub priority: Option<TaskPriority>,
    /// What became of it.
    #[serde(default)]
    pub status: Option<TaskStatus>,
}

fn one_line(text: &str, (): &()) -> garde::Result {
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        return Err(garde::Error::new("must be one line that is not empty"));
    }
    Ok(())
}
