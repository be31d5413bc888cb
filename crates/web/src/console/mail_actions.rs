//! Actions on conversations, from the list and from the reader: archiving, moving, trashing, deleting, and taking that back.

use axum::{
    Router,
    extract::{Path, Request},
    response::Response,
    routing::post,
};
use model::{
    EmailId,
    emails::{BulkDelete, BulkMove, BulkRead, Email},
};
use operations::{Error, Result, emails, threads};
use serde_json::json;

use super::{
    confirm::{Question, ask, confirmed},
    fields::{Fields, input},
    links::{encoded, safe_next},
    page,
    text::{counted, plural},
    undo::{Moves, Outcome},
    visit::Visit,
};
use crate::State;

/// Conversations that one action changes.
const MAX_THREADS: usize = 100;

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/m/{mailbox}/act", post(act))
        .route("/console/m/{mailbox}/undo", post(undo))
        .route("/console/m/{mailbox}/empty-trash", post(empty_trash))
}

/// Applies an action to conversations.
async fn act(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let back = back_to(&mailbox, &fields);
    if fields.get("action") == "delete"
        && let Some(asked) = ask_deletion(&visit, &fields, &back)
    {
        return asked;
    }
    let outcome = change(&visit, &mailbox, &fields).await;
    visit.conclude(&back, outcome.map(|outcome| Outcome { target: back.clone(), ..outcome }))
}

/// The list that the form was on.
fn back_to(mailbox: &str, fields: &Fields) -> String {
    match fields.given("back") {
        Some(back) => safe_next(back).to_owned(),
        None => format!("/console/m/{}/f/inbox", encoded(mailbox)),
    }
}

/// Asks before conversations are deleted for good.
fn ask_deletion(visit: &Visit, fields: &Fields, back: &str) -> Option<Response> {
    let count = i64::try_from(chosen(fields).len()).unwrap_or(i64::MAX);
    let what = if count == 1 { "this conversation".to_owned() } else { counted(count, "conversation") };
    let question = Question {
        title: &format!("Delete {what}?"),
        text: "This cannot be undone.",
        button: &format!("Delete {}", plural(count, "conversation")),
        cancel: back,
        typed: "",
    };
    ask(visit, fields, &question)
}

/// The chosen conversations, each once.
fn chosen(fields: &Fields) -> Vec<&str> {
    let mut threads = fields.all("thread");
    threads.sort_unstable();
    threads.dedup();
    threads.truncate(MAX_THREADS);
    threads
}

/// The messages of the chosen conversations that an action moves: in a folder its own, elsewhere everything except sent
/// messages and drafts.
struct Chosen {
    emails: Vec<Email>,
    folder: String,
}

impl Chosen {
    fn is_here(&self, email: &Email) -> bool {
        let at = email.folder_id.as_str();
        match self.folder.as_str() {
            "" => !matches!(at, "sent" | "draft" | "scheduled" | "review"),
            folder => at == folder,
        }
    }

    fn moved(&self) -> impl Iterator<Item = &Email> {
        self.emails.iter().filter(|email| self.is_here(email))
    }

    fn ids(&self) -> Vec<EmailId> {
        self.moved().map(|email| email.id.clone()).collect()
    }

    /// Where each of them is now.
    fn places(&self) -> Moves {
        self.moved().map(|email| (email.folder_id.as_str(), email.id.clone())).collect()
    }
}

async fn change(visit: &Visit, mailbox: &str, fields: &Fields) -> Result<Outcome> {
    let threads = chosen(fields);
    if threads.is_empty() {
        return Err(Error::invalid("selection", "select at least one conversation"));
    }
    let mut chosen = Chosen { emails: Vec::new(), folder: fields.get("folder").to_owned() };
    for thread in &threads {
        let query = input(&json!({ "metadata_only": true }))?;
        let call = visit.call(&threads::GET)?;
        chosen.emails.extend(threads::get(visit.app(), &call, mailbox, (*thread).into(), query).await?);
    }
    let what = match threads.len() {
        1 => "Conversation".to_owned(),
        count => counted(i64::try_from(count).unwrap_or(i64::MAX), "conversation"),
    };
    let undo = || chosen.places().undo(mailbox);
    match fields.get("action") {
        action @ ("read" | "unread") => {
            set_read(visit, mailbox, &chosen.emails, action == "read").await?;
            Ok(Outcome::said(if action == "read" {
                String::new()
            } else {
                format!("{what} marked as unread.")
            }))
        }
        "trash" => {
            discard(visit, mailbox, chosen.ids(), false).await?;
            Ok(Outcome { undo: undo(), ..Outcome::said(format!("{what} moved to Trash.")) })
        }
        "delete" => {
            discard(visit, mailbox, chosen.ids(), true).await?;
            Ok(Outcome::said(format!("{what} deleted.")))
        }
        action @ ("star" | "unstar") => {
            alter(visit, mailbox, &chosen.emails, &json!({ "starred": action == "star" })).await?;
            Ok(Outcome::said(String::new()))
        }
        "label" => {
            let labels = json!({ "custom_labels": fields.all("label") });
            alter(visit, mailbox, &chosen.emails, &labels).await?;
            Ok(Outcome::said("Labels saved.".to_owned()))
        }
        "archive" => {
            relocate(visit, mailbox, chosen.ids(), "archive").await?;
            Ok(Outcome { undo: undo(), ..Outcome::said(format!("{what} archived.")) })
        }
        "move" => {
            relocate(visit, mailbox, chosen.ids(), fields.get("target")).await?;
            Ok(Outcome { undo: undo(), ..Outcome::said(format!("{what} moved.")) })
        }
        _ => Err(Error::invalid("action", "unknown action")),
    }
}

/// Changes the newest email of a conversation.
async fn alter(visit: &Visit, mailbox: &str, emails: &[Email], change: &serde_json::Value) -> Result<()> {
    let newest = emails.last().ok_or_else(|| Error::not_found("Email not found"))?;
    let call = visit.call(&emails::UPDATE)?;
    emails::update(visit.app(), &call, mailbox, newest.id.clone(), input(change)?).await.map(|_| ())
}

/// Marks everything as read, or the newest message that arrived as unread.
async fn set_read(visit: &Visit, mailbox: &str, found: &[Email], read: bool) -> Result<()> {
    let ids: Vec<EmailId> = if read {
        found.iter().filter(|email| !email.read).map(|email| email.id.clone()).collect()
    } else {
        let newest = found.iter().rev().find(|email| email.delivery_status.is_none()).or(found.last());
        newest.map(|email| email.id.clone()).into_iter().collect()
    };
    if ids.is_empty() {
        return Ok(());
    }
    let call = visit.call(&emails::BULK_READ)?;
    emails::bulk_read(visit.app(), &call, mailbox, BulkRead { ids, read }).await.map(|_| ())
}

async fn discard(visit: &Visit, mailbox: &str, ids: Vec<EmailId>, permanent: bool) -> Result<()> {
    let call = visit.call(&emails::BULK_DELETE)?;
    emails::bulk_delete(visit.app(), &call, mailbox, BulkDelete { ids, permanent }).await.map(|_| ())
}

async fn relocate(visit: &Visit, mailbox: &str, ids: Vec<EmailId>, target: &str) -> Result<()> {
    let call = visit.call(&emails::BULK_MOVE)?;
    let wanted = BulkMove { ids, folder_id: target.into() };
    emails::bulk_move(visit.app(), &call, mailbox, wanted).await.map(|_| ())
}

/// Moves emails back to the folders they were in.
async fn undo(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let back = back_to(&mailbox, &fields);
    let work = async {
        let moves = Moves::parse(fields.get("data"))?;
        for (folder, ids) in moves.into_folders() {
            relocate(&visit, &mailbox, ids, &folder).await?;
        }
        Ok(Outcome { target: back.clone(), ..Outcome::said("Moved back.".to_owned()) })
    };
    visit.conclude(&back, work.await)
}

async fn empty_trash(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let back = format!("/console/m/{}/f/trash", encoded(&mailbox));
    let question = Question {
        title: "Empty Trash?",
        text: "Everything in Trash is deleted. This cannot be undone.",
        button: "Empty Trash",
        cancel: &back,
        typed: "",
    };
    let empty = async |_| {
        let work = async {
            let call = visit.call(&emails::EMPTY_TRASH)?;
            let deleted = emails::empty_trash(visit.app(), &call, &mailbox).await?;
            Ok((back.clone(), format!("{} deleted.", counted(deleted.deleted_count, "message"))))
        };
        visit.act(&back, work).await
    };
    confirmed(&visit, request, &question, empty).await
}
