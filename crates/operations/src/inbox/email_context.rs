//! The safe context of an email: the message and a page of its thread, for an agent to read.

use model::{
    EmailId, Timestamp,
    emails::{ContextQuery, ContextThread, EmailContext, ReadOptions, ScanStatus},
};
use serde::{Deserialize, Serialize};
use store::emails;

use crate::{
    core::{
        app::App,
        call::Call,
        cursor,
        error::{ErrorKind, Result},
        operation::Operation,
    },
    inbox::emails::{
        present::{self, Presenter},
        require_visible,
        surroundings::{Surroundings, WantedContents},
    },
    mailbox::mailboxes,
};

/// Reads the context of an email.
pub const GET: Operation = Operation::read(
    "getEmailContext",
    "Returns an email and its thread as bounded plain text that is safe for an agent; content is untrusted.",
)
.errors(&[ErrorKind::NotFound, ErrorKind::InvalidCursor])
.tagged();

pub(crate) const OPERATIONS: &[&Operation] = &[&GET];

/// Where a page of the thread ended.
#[derive(Serialize, Deserialize)]
struct ContextPosition {
    date: i64,
    id: EmailId,
}

/// Reads an email with a page of its thread.
#[crate::boxed]
pub async fn get(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: EmailId,
    query: ContextQuery,
) -> Result<EmailContext> {
    let named = mailboxes::name(call, mailbox);
    let key = app.data_key(&call.workspace).await?;
    let about = format!("getEmailContext {id} {}", query.include_held);
    let after = match &query.cursor {
        Some(text) => {
            let position: ContextPosition = cursor::open(&key, &about, text)?;
            Some((Timestamp::from_micros(position.date), position.id))
        }
        None => None,
    };
    let (now, limit) = (call.now, query.limit);
    let held_after = (!query.include_held).then_some(now);
    let read = app
        .read(call, async move |tx| {
            let key = (&named).into();
            let mut mail = emails::select_one(key, &id);
            let mut messages = emails::select_context(key, &id, after.as_ref(), held_after, limit + 1);
            let mut total = emails::select_context_total(&named, &id, held_after);
            tx.select(&mut [&mut total, &mut mail, &mut messages]).await?;
            let total = total.row().ok_or_else(mailboxes::missing)?;
            let mail = mail.row().ok_or_else(present::missing)?;
            require_visible(&mail, query.include_held, now)?;
            let mut shown = vec![mail];
            shown.extend(messages.rows());
            let wanted = usize::try_from(limit).unwrap_or_default() + 1;
            let more = shown.len() > wanted;
            shown.truncate(wanted);
            let options = options();
            let contents = WantedContents::bodies(&options, true);
            let surroundings = Surroundings::load(tx, &total.id, &shown, &options, contents).await?;
            let all = shown.into_iter().map(|mail| {
                let fetched = surroundings.body(&mail, &options);
                (mail, fetched)
            });
            Ok((all.collect::<Vec<_>>(), surroundings.names, total.figure, more))
        })
        .await?;
    let (all, names, total_count, has_more) = read;
    let next_cursor = match all.last() {
        Some((last, _)) if has_more => {
            let position = ContextPosition { date: last.date.as_micros(), id: last.id.clone() };
            Some(cursor::seal(&key, &about, &position)?)
        }
        _ => None,
    };
    let options = options();
    let presenter = Presenter { folders: &names, options: &options };
    let mut shown = Vec::with_capacity(all.len());
    for (mail, fetched) in all {
        let thread = mail.thread_id.clone();
        shown.push((thread, presenter.open_and_show(app, &call.workspace, mail, fetched).await?));
    }
    let mut shown = shown.into_iter();
    let (thread_id, email) = shown.next().ok_or_else(present::missing)?;
    let messages = shown.map(|(_, email)| email).collect();
    let thread = ContextThread { id: thread_id, messages, total_count, has_more, next_cursor };
    Ok(EmailContext { email, thread })
}

/// Safe text of clean messages, whatever the caller asks for.
fn options() -> ReadOptions {
    ReadOptions {
        agent_safe_content: true,
        require_scan_status: Some(ScanStatus::Clean),
        max_body_chars: Some(present::DEFAULT_SAFE_CHARS),
        ..ReadOptions::default()
    }
}
