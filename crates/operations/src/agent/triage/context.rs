//! A message as triagers see it: its safe text within the scan gate, its thread, an invitation in it.

use mail::{
    address::Address,
    auto_reply::{NoReplyReason, may_answer},
    message::{self, Message, Person, calendar},
    safe_text::SafeText,
};
use model::{
    EmailId, MailboxId, Plan, Timestamp, WorkspaceId,
    emails::ScanStatus,
    folders::{SystemFolder, is_unsent},
    labels::Label,
    triagers::Triager,
};
use store::{
    contents,
    emails::{self, EmailRecord},
    labels,
    mailboxes::{self, MailboxName, MailboxRecord},
    triagers, workspaces,
};

use crate::{
    core::{
        app::App,
        error::{Error, Result},
    },
    inbox::{
        emails::present::{self, EmailContent, FetchedContent},
        inbound::{self, FilterableEmail},
    },
};

/// Messages of the same thread that are shown beside it.
const MAX_EARLIER_EMAILS: i64 = 5;

/// A message and everything around it that triagers need.
pub(super) struct Context {
    pub(super) workspace: WorkspaceId,
    pub(super) plan: Plan,
    pub(super) mailbox: MailboxRecord,
    pub(super) record: EmailRecord,
    pub(super) message: Message,
    /// Its text for agents; `None` when the scan gate withholds it.
    pub(super) text: Option<String>,
    pub(super) invitation: Option<calendar::Invitation>,
    /// Earlier messages of its thread that may be shown, oldest first.
    pub(super) earlier: Vec<EarlierEmail>,
    pub(super) labels: Vec<Label>,
    pub(super) triagers: Vec<Triager>,
}

/// An earlier message of the same thread.
pub(super) struct EarlierEmail {
    pub(super) record: EmailRecord,
    pub(super) text: String,
}

/// The rows of a message and its surroundings.
struct ContextRows {
    plan: Plan,
    mailbox: MailboxRecord,
    record: EmailRecord,
    content: contents::ContentRecord,
    text: Option<FetchedContent>,
    earlier: Vec<(EmailRecord, FetchedContent)>,
    labels: Vec<Label>,
    triagers: Vec<Triager>,
}

/// Whether a message's text may be shown to a model.
fn is_open(mail: &EmailRecord) -> bool {
    mail.outgoing || mail.scan_status == Some(ScanStatus::Clean)
}

impl Context {
    /// Loads a message; `None` when it, or its mailbox, is gone.
    pub(super) async fn load(
        app: &App,
        workspace: &WorkspaceId,
        mailbox: &MailboxId,
        email: &EmailId,
        now: Timestamp,
    ) -> Result<Option<Self>> {
        let (named, wanted) = (mailbox.clone(), email.clone());
        let read = app.db().read(workspace, async move |tx| find(tx, &named, &wanted, now).await);
        let Some(found) = read.await? else { return Ok(None) };
        let raw = present::open_raw(app, workspace, &found.content).await?;
        let (message, invitation) =
            tokio::task::spawn_blocking(move || read_message(&raw)).await.map_err(Error::internal)?;
        let text = match found.text {
            Some(fetched) => Some(open(app, workspace, fetched).await?),
            None => None,
        };
        let mut earlier = Vec::with_capacity(found.earlier.len());
        for (record, fetched) in found.earlier {
            earlier.push(EarlierEmail { record, text: open(app, workspace, fetched).await? });
        }
        Ok(Some(Self {
            workspace: workspace.clone(),
            plan: found.plan,
            mailbox: found.mailbox,
            record: found.record,
            message,
            text,
            invitation,
            earlier,
            labels: found.labels,
            triagers: found.triagers,
        }))
    }

    /// The message as a filter expression sees it.
    pub(super) fn subject(&self) -> FilterableEmail<'_> {
        let safe = self.text.as_deref().unwrap_or_default();
        FilterableEmail {
            record: &self.record,
            message: &self.message,
            safe,
            has_link: inbound::has_link(safe),
        }
    }

    /// Whether no scanner has found anything wrong with it.
    pub(super) fn is_clean(&self) -> bool {
        is_open(&self.record)
    }

    /// The domains of the other side.
    pub(super) fn domains(&self) -> Vec<String> {
        if self.record.outgoing {
            domains(self.message.to.iter().chain(&self.message.cc))
        } else {
            domains(self.message.from.iter())
        }
    }

    /// Why no reply may be drafted; `None` when one may.
    pub(super) fn reply_refusal(&self, sender: Option<&str>) -> Option<&'static str> {
        if self.record.outgoing {
            return Some("Mail that was sent from here gets no answer.");
        }
        if !self.is_clean() {
            return Some("Mail that is not clean gets no answer.");
        }
        if self.record.folder_id == SystemFolder::Spam {
            return Some("Spam gets no answer.");
        }
        let own = [self.mailbox.email.as_str(), self.record.recipient.as_str()];
        match may_answer(&self.message, sender, &own) {
            Ok(_) => None,
            Err(NoReplyReason::NullSender) => Some("Mail without a sender gets no answer."),
            Err(NoReplyReason::Automatic(_) | NoReplyReason::Program) => {
                Some("Automatic mail, bulk mail and mail of lists get no answer.")
            }
            Err(NoReplyReason::NotAddressed) => {
                Some("Mail that is not addressed to this mailbox gets no answer.")
            }
            Err(_) => Some("This mail may not be answered by a program."),
        }
    }
}

async fn find(
    tx: &mut store::Tx,
    mailbox: &MailboxId,
    email: &EmailId,
    now: Timestamp,
) -> Result<Option<ContextRows>> {
    let Some(workspace) = workspaces::find(tx).await? else { return Ok(None) };
    let named = MailboxName::Id(mailbox.clone());
    let Some(owner) = mailboxes::find(tx, &named).await? else { return Ok(None) };
    let Some(record) = emails::find(tx, mailbox, email).await? else { return Ok(None) };
    if is_unsent(&record.folder_id) {
        return Ok(None);
    }
    let Some(content) = contents::find(tx, &record.content_id).await? else { return Ok(None) };
    let text = if is_open(&record) { present::fetch(tx, &record.content_id, true).await? } else { None };
    let position = Some((record.date, record.id.clone()));
    let mut earlier = Vec::new();
    for one in
        emails::list_thread_end(tx, mailbox, &record.thread_id, position, Some(now), MAX_EARLIER_EMAILS)
            .await?
    {
        let written = is_unsent(&one.folder_id);
        if is_open(&one)
            && !written
            && let Some(fetched) = present::fetch(tx, &one.content_id, true).await?
        {
            earlier.push((one, fetched));
        }
    }
    Ok(Some(ContextRows {
        plan: workspace.plan,
        mailbox: owner,
        record,
        content,
        text,
        earlier,
        labels: labels::list(tx, mailbox).await?,
        triagers: triagers::list(tx, mailbox).await?,
    }))
}

/// Parses a message and the first invitation in it.
fn read_message(raw: &[u8]) -> (Message, Option<calendar::Invitation>) {
    let message = message::read(raw);
    let invitation = message
        .files
        .iter()
        .filter(|file| file.media_type == "text/calendar")
        .find_map(|file| calendar::read(&String::from_utf8_lossy(&message::decode(raw, file))));
    (message, invitation)
}

async fn open(app: &App, workspace: &WorkspaceId, fetched: FetchedContent) -> Result<String> {
    Ok(match present::open(app, workspace, fetched).await? {
        EmailContent::Safe(text) => text,
        // Never requested; only safe text is text here.
        EmailContent::Full { .. } | EmailContent::Preview => String::new(),
    })
}

/// The domains of addresses, normalised.
pub(super) fn domains<'a>(people: impl Iterator<Item = &'a Person>) -> Vec<String> {
    let domain = |person: &Person| Some(Address::parse(&person.address).ok()?.domain().to_owned());
    people.filter_map(domain).collect()
}

/// A text on one line, as agents see it, of at most that many characters.
pub(super) fn line(text: &str, max_chars: usize) -> String {
    SafeText::line(text).cut(max_chars).0.to_owned()
}
