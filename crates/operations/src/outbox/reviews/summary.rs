//! A message in review in short, for notices: who asks, what it says, to whom, and why a person decides.

use mail::safe_text::{self, SafeText};
use model::{
    EmailId, MailboxId, ReviewId, emails::BodyFormat, reviews::ReviewState, send_policies::PolicyReason,
};
use store::{
    Tx, drafts as stored_drafts, emails,
    reviews::{self, ReviewRecord},
    vault::DataKey,
};

use crate::{core::error::Result, outbox::drafts::loaded::Source};

/// A pending message in short.
#[derive(Clone, Debug)]
pub(crate) struct ReviewSummary {
    /// The review.
    pub(crate) record: ReviewRecord,
    /// The lines of its recipients that are not empty, with the addresses of each: To, Cc, Bcc.
    pub(crate) recipients: Vec<(&'static str, Vec<String>)>,
    /// Its subject.
    pub(crate) subject: SafeText,
    /// What it says.
    pub(crate) text: SafeText,
    /// Whether readers of its plain text and of its HTML may see different things.
    pub(crate) divergent: bool,
    /// The names of its files.
    pub(crate) files: Vec<String>,
    /// Why a person decides, in words.
    pub(crate) why: Vec<String>,
}

impl ReviewSummary {
    /// Reads a message of a mailbox that nobody has decided about.
    pub(crate) async fn find(
        tx: &mut Tx,
        key: &DataKey,
        mailbox: &MailboxId,
        id: &ReviewId,
    ) -> Result<Option<Self>> {
        let found = reviews::find(tx, id).await?;
        let is_pending = |one: &ReviewRecord| one.state == ReviewState::Pending && one.mailbox_id == *mailbox;
        let Some(record) = found.filter(is_pending) else { return Ok(None) };
        let draft = stored_drafts::find(tx, mailbox, &record.email_id).await?;
        let email = emails::find(tx, mailbox, &record.email_id).await?;
        let Some((draft, email)) = draft.zip(email) else { return Ok(None) };
        let source = Source::open(key, &draft.source)?;
        let (text, html) = bodies(&source);
        let body = safe_text::body(text, html);
        let lines = [("To", &source.to), ("Cc", &source.cc), ("Bcc", &source.bcc)].map(|(name, people)| {
            (name, people.iter().map(|person| SafeText::line(&person.to_string()).into_string()).collect())
        });
        Ok(Some(Self {
            recipients: lines
                .into_iter()
                .filter(|(_, people): &(_, Vec<String>)| !people.is_empty())
                .collect(),
            subject: SafeText::line(&source.subject),
            text: body.text,
            divergent: body.divergent,
            files: email
                .attachments
                .iter()
                .map(|file| SafeText::line(&file.filename).into_string())
                .collect(),
            why: why(&record, &source),
            record,
        }))
    }

    /// The message.
    pub(crate) fn email(&self) -> &EmailId {
        &self.record.email_id
    }
}

/// The plain text and the HTML as they will leave.
fn bodies(source: &Source) -> (Option<&str>, Option<&str>) {
    match &source.accepted {
        Some(accepted) => (accepted.text.as_deref(), accepted.html.as_deref()),
        None if source.format == BodyFormat::Html => (None, Some(&source.body)),
        None => (Some(&source.body), None),
    }
}

fn why(record: &ReviewRecord, source: &Source) -> Vec<String> {
    let reasons = record.reasons.iter().map(|finding| {
        let address = finding.path.as_deref().and_then(|path| address_at(source, path));
        match finding.code {
            PolicyReason::NewRecipient => {
                let address = address.unwrap_or_else(|| "a recipient".to_owned());
                format!("never written to {address} before")
            }
            PolicyReason::ReviewAll => "all messages are reviewed".to_owned(),
            PolicyReason::QuietHours => "it is within quiet hours".to_owned(),
            PolicyReason::Content => found(record, finding.path.as_deref().unwrap_or_default()),
            PolicyReason::ScanFailed => "its contents could not be searched".to_owned(),
            other => other.as_str().replace('_', " "),
        }
    });
    reasons.collect()
}

/// What was found at a place of the contents.
fn found(record: &ReviewRecord, place: &str) -> String {
    let here = record.findings.iter().filter(|one| one.place == place);
    let masked: Vec<&str> = here.map(|one| one.masked.as_str()).collect();
    format!("found in {place}: {}", masked.join(", "))
}

/// The address that a path such as `cc[1]` names.
fn address_at(source: &Source, path: &str) -> Option<String> {
    let (name, index) = path.strip_suffix(']')?.split_once('[')?;
    let people = match name {
        "to" => &source.to,
        "cc" => &source.cc,
        "bcc" => &source.bcc,
        _ => return None,
    };
    Some(people.get(index.parse::<usize>().ok()?)?.address().to_string())
}
