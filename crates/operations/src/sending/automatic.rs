//! Mail that nobody writes: copies for another address, automatic answers, mail of the service itself.
//!
//! It is put into the queue in the transaction of what it follows from, so that a crash neither loses nor doubles it.

use mail::{
    address::Address,
    auto_reply::may_answer,
    compose::{self, AutoSubmitted, Outgoing, Person, quote},
};
use model::{
    MailboxId, Timestamp,
    emails::ScanStatus,
    mailboxes::MailboxSettings,
    sending::{OutboundMode, RecipientLine, RecipientState},
};
use sha2::{Digest, Sha256};
use store::{
    Tx,
    blobs::BlobHash,
    contents::{self, ContentRecord, Kept, Part},
    emails::EmailRecord,
    mailboxes::MailboxRecord,
    outbound::{self, DeliveryRecord, OutboundRecord},
    send_limits,
    vault::DataKey,
};

use super::quota;
use crate::{
    App, Error, Result,
    inbound::{Content, Delivery, Recipient},
};

/// How long nobody gets a second automatic answer.
const ANSWER_PAUSE_SECONDS: i64 = 7 * 86_400;
/// The header by which a copy is recognised that went round in a circle.
const LOOP_HEADER: &str = "X-Loop";
/// A mail that has just arrived, and what follows from it.
pub(crate) struct Arrived<'a> {
    pub(crate) delivery: &'a Delivery<'a>,
    pub(crate) recipient: &'a Recipient,
    pub(crate) mailbox: &'a MailboxRecord,
    pub(crate) mail: &'a EmailRecord,
    pub(crate) content: &'a Content,
}

impl Arrived<'_> {
    /// Puts the copy and the answer into the queue that the mailbox's settings ask for.
    pub(crate) async fn follow(&self, tx: &mut Tx) -> Result<()> {
        // What was imported did not arrive now, and what is dangerous or spam leads to nothing.
        let came = self.delivery.authentication.inbound_provider.is_some();
        let trusted =
            self.mail.folder_id.as_str() != "spam" && self.delivery.prepared.verdict.0 != ScanStatus::Flagged;
        if !came || !trusted {
            return Ok(());
        }
        self.forward(tx).await?;
        self.answer(tx).await
    }

    fn own_address(&self) -> &str {
        &self.mailbox.email
    }

    async fn forward(&self, tx: &mut Tx) -> Result<()> {
        let forwarding = &self.mailbox.settings.forwarding;
        let Some(to) = forwarding.email.as_ref().filter(|_| forwarding.enabled) else { return Ok(()) };
        if to.without_tag().as_str() == self.own_address() || self.went_round() {
            return Ok(());
        }
        let (app, now) = (self.delivery.app, self.delivery.now);
        if !has_way(app, to) {
            tracing::debug!("a copy has no way out: outbound.mode is local");
            return Ok(());
        }
        let earliest =
            quota::take_automatic(tx, app, self.recipient.plan, &self.recipient.mailbox, now).await?;
        let prefix = format!(
            "Received: by {}; {}\r\n{LOOP_HEADER}: {}\r\n",
            app.settings().hostname,
            rfc2822(now),
            self.own_address()
        );
        let record = OutboundRecord {
            id: app.new_uuid().simple().to_string(),
            mailbox_id: Some(self.recipient.mailbox.clone()),
            email_id: None,
            kind: "forward".to_owned(),
            content_id: self.content.record.id.clone(),
            prefix,
            // What cannot be delivered comes back to the mailbox, and the receiver sees a sender that we may send for.
            sender: self.delivery.sender.map(|_| self.own_address().to_owned()),
            message_id: self.mail.message_id.clone(),
            created_at: now,
            expires_at: now.plus_seconds(app.settings().outbound.retry_seconds),
            report: "none".to_owned(),
        };
        Ok(outbound::insert(tx, &record, &[queued(&to.to_string(), earliest.unwrap_or(now))]).await?)
    }

    /// Whether this mailbox passed the mail on before.
    fn went_round(&self) -> bool {
        let headers = &self.delivery.prepared.message.headers;
        headers.lines().filter_map(|line| line.split_once(':')).any(|(name, value)| {
            name.eq_ignore_ascii_case(LOOP_HEADER) && value.trim().eq_ignore_ascii_case(self.own_address())
        })
    }

    async fn answer(&self, tx: &mut Tx) -> Result<()> {
        let settings = &self.mailbox.settings;
        if !settings.auto_reply.enabled || settings.auto_reply.message.trim().is_empty() {
            return Ok(());
        }
        let message = &self.delivery.prepared.message;
        let Ok(to) = may_answer(message, self.delivery.sender, &[self.own_address()]) else { return Ok(()) };
        let (app, now) = (self.delivery.app, self.delivery.now);
        if !has_way(app, &to) {
            return Ok(());
        }
        let hashed: [u8; 32] = Sha256::digest(to.as_str()).into();
        let mailbox = &self.recipient.mailbox;
        let not_after = now.plus_seconds(-ANSWER_PAUSE_SECONDS);
        if !send_limits::note_auto_reply(tx, mailbox, &hashed, now, not_after).await? {
            return Ok(());
        }
        if quota::take_automatic(tx, app, self.recipient.plan, mailbox, now).await?.is_some() {
            return Ok(());
        }
        let written = self.written(settings, &to);
        let mail =
            Automatic { kind: "auto_reply", mailbox: Some(mailbox.clone()), sender: None, to, written };
        mail.enqueue(tx, app, &self.content.key, now).await
    }

    fn written(&self, settings: &MailboxSettings, to: &Address) -> Outgoing {
        let message = &self.delivery.prepared.message;
        let subject = settings.auto_reply.subject.trim();
        let threading = quote::threading(
            message.message_id.as_deref(),
            message.in_reply_to.as_deref(),
            &message.references,
        );
        let name = Some(settings.from_name.trim()).filter(|name| !name.is_empty());
        let (app, now) = (self.delivery.app, self.delivery.now);
        let domain = self.own_address().rsplit_once('@').map_or("localhost", |(_, domain)| domain);
        Outgoing {
            message_id: format!("{}@{domain}", app.new_uuid().simple()),
            date: now.as_micros(),
            from: Person { name: name.map(ToOwned::to_owned), address: self.own_address().to_owned() },
            to: vec![Person { name: None, address: to.to_string() }],
            subject: if subject.is_empty() {
                short_reply_subject(&message.subject)
            } else {
                subject.to_owned()
            },
            in_reply_to: threading.in_reply_to,
            references: threading.references,
            text: Some(settings.auto_reply.message.clone()),
            auto_submitted: Some(AutoSubmitted::Replied),
            ..Outgoing::default()
        }
    }
}

/// The subject of an answer to a stranger's mail, short enough for any header.
fn short_reply_subject(original: &str) -> String {
    let clean: String = original.chars().filter(|c| !c.is_control()).take(150).collect();
    quote::reply_subject(&clean)
}

/// Whether an address is one of ours, or there is a way to others.
fn has_way(app: &App, to: &Address) -> bool {
    let hosted = app.settings().hosted_domains.iter().any(|domain| domain == to.domain());
    hosted || matches!(app.settings().outbound.mode, OutboundMode::Relay | OutboundMode::Direct)
}

/// A record that the worker finds the way for.
fn queued(recipient: &str, at: Timestamp) -> DeliveryRecord {
    DeliveryRecord {
        position: 0,
        recipient: recipient.to_owned(),
        line: RecipientLine::To,
        destination: String::new(),
        state: RecipientState::Queued,
        attempts: 0,
        next_attempt_at: Some(at),
        last_attempt_at: None,
        finished_at: None,
        reply: None,
    }
}

/// A mail that a program wrote, on its way into the queue.
struct Automatic {
    kind: &'static str,
    mailbox: Option<MailboxId>,
    sender: Option<String>,
    to: Address,
    written: Outgoing,
}

impl Automatic {
    async fn enqueue(self, tx: &mut Tx, app: &App, key: &DataKey, now: Timestamp) -> Result<()> {
        let raw = compose::compose(&self.written).map_err(Error::internal)?;
        let id = BlobHash::of(&raw).as_str().to_owned();
        let body = self.written.text.unwrap_or_default();
        let content = ContentRecord {
            size: i64::try_from(raw.len()).unwrap_or(i64::MAX),
            raw: Kept::InRow(contents::seal(key, &id, Part::Raw, &raw)?),
            headers: None,
            body: Kept::InRow(contents::seal(key, &id, Part::Body, body.as_bytes())?),
            safe: None,
            id,
        };
        contents::insert(tx, &content, now).await?;
        let record = OutboundRecord {
            id: app.new_uuid().simple().to_string(),
            mailbox_id: self.mailbox,
            email_id: None,
            kind: self.kind.to_owned(),
            content_id: content.id,
            prefix: String::new(),
            sender: self.sender,
            message_id: Some(self.written.message_id),
            created_at: now,
            expires_at: now.plus_seconds(app.settings().outbound.retry_seconds),
            report: "none".to_owned(),
        };
        Ok(outbound::insert(tx, &record, &[queued(&self.to.to_string(), now)]).await?)
    }
}

/// Puts a mail of the service itself into the queue of a workspace; it does nothing where there is no way to its
/// recipient. Whatever else the transaction does, the mail leaves if and only if that happens.
pub(crate) async fn enqueue_system(
    tx: &mut Tx,
    app: &App,
    key: &DataKey,
    to: &str,
    subject: String,
    text: String,
) -> Result<()> {
    let to = Address::parse(to).map_err(Error::internal)?;
    let Some(domain) = app.settings().hosted_domains.first().filter(|_| has_way(app, &to)) else {
        return Ok(());
    };
    let address = format!("postmaster@{domain}");
    let now = app.now();
    let written = Outgoing {
        message_id: format!("{}@{domain}", app.new_uuid().simple()),
        date: now.as_micros(),
        from: Person { name: Some("Agent Mailbox".to_owned()), address },
        to: vec![Person { name: None, address: to.to_string() }],
        subject,
        text: Some(text),
        auto_submitted: Some(AutoSubmitted::Generated),
        ..Outgoing::default()
    };
    Automatic { kind: "system", mailbox: None, sender: None, to, written }.enqueue(tx, app, key, now).await
}

fn rfc2822(at: Timestamp) -> String {
    let micros = jiff::Timestamp::from_microsecond(at.as_micros()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    jiff::fmt::rfc2822::to_string(&micros.to_zoned(jiff::tz::TimeZone::UTC)).unwrap_or_default()
}
