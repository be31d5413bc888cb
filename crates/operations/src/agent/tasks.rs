//! Tasks that triagers found in messages: listing and changing them.

use model::{
    Scope, TaskId,
    tasks::{Task, TaskChange, TaskPage, TaskQuery},
};
use store::tasks;

use crate::{
    core::{
        app::App,
        call::Call,
        cursor,
        error::{Error, ErrorKind, Result},
        operation::Operation,
    },
    mailbox::mailboxes,
};

/// Lists the tasks.
pub const LIST: Operation =
    Operation::read("listTasks", "Lists the tasks that triagers found, newest first; titles are untrusted.")
        .errors(&[ErrorKind::NotFound, ErrorKind::InvalidCursor]);
/// Changes a task.
pub const UPDATE: Operation =
    Operation::write("updateTask", "Changes a task that a triager found: its status, or what it says.")
        .scope(Scope::Agent)
        .errors(&[ErrorKind::NotFound]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &UPDATE];

/// Lists the tasks of a mailbox.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, mailbox: &str, query: TaskQuery) -> Result<TaskPage> {
    let named = mailboxes::name(call, mailbox);
    let key = app.data_key(&call.workspace).await?;
    let about = format!("listTasks {mailbox} {:?}", query.status);
    let before: Option<TaskId> = match &query.cursor {
        Some(text) => Some(cursor::open(&key, &about, text)?),
        None => None,
    };
    let limit = query.limit;
    let mut found = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            Ok(tasks::list(tx, &mailbox, query.status, before.as_ref(), limit + 1).await?)
        })
        .await?;
    let has_more = cursor::truncate(&mut found, limit);
    let next_cursor = match found.last().filter(|_| has_more) {
        Some(last) => Some(cursor::seal(&key, &about, &last.id)?),
        None => None,
    };
    Ok(TaskPage { tasks: found, has_more, next_cursor })
}

/// Changes a task.
#[crate::boxed]
pub async fn update(app: &App, call: &Call, mailbox: &str, id: TaskId, change: TaskChange) -> Result<Task> {
    let (named, now) = (mailboxes::name(call, mailbox), call.now);
    app.write(call, async move |tx| {
        let mailbox = crate::inbox::emails::lock_mailbox(tx, &named).await?;
        let found = tasks::find(tx, &mailbox, &id).await?;
        let task = found.ok_or_else(|| Error::not_found("Task not found"))?;
        tx.audit().about("task", &id);
        let task = Task {
            title: change.title.map_or(task.title, |title| title.trim().to_owned()),
            due_at: change.due_at.or(task.due_at),
            priority: change.priority.unwrap_or(task.priority),
            status: change.status.unwrap_or(task.status),
            updated_at: now,
            ..task
        };
        tasks::update(tx, &mailbox, &task).await?;
        Ok(task)
    })
    .await
}
