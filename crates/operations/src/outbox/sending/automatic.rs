//! Mail that nobody writes: copies for another address, automatic answers, mail of the service itself.
//!
//! It is put into the queue in the transaction of what it follows from, so that a crash neither loses nor doubles it.

use mail::{
    address::Address,
    auto_reply::may_answer,
    compose::{self, AutoSubmitted, Person, UnencodedMessage, quote},
    srs::Srs,
};
use model::{
    MailboxId, Timestamp,
    emails::ScanStatus,
    folders::SystemFolder,
    mailboxes::MailboxSettings,
    outbound::{OutboundKind, ReportState},
    sending::{RecipientLine, RecipientState},
};
use sha2::{Digest, Sha256};
use store::{
    Tx,
    blobs::BlobHash,
    contents::{self, ContentRecord, Part, StoredPart},
    emails::EmailRecord,
    outbound::{self, DeliveryRecord, OutboundRecord},
    send_limits,
    vault::DataKey,
};

use super::quota;
use crate::core::{
    app::{App, ArrivalHook, HookFuture},
    arriving::Arriving,
    error::{Error, Result},
};

/// How long nobody gets a second automatic answer.
const ANSWER_PAUSE_SECONDS: i64 = 7 * 86_400;
/// The header by which a copy is recognised that went round in a circle.
const LOOP_HEADER: &str = "X-Loop";
/// Puts the copy and the answer into the queue that the mailbox's settings ask for.
pub(crate) struct AutomaticMail;

impl ArrivalHook for AutomaticMail {
    fn after_arrival<'a>(
        &'a self,
        tx: &'a mut Tx,
        app: &'a App,
        arriving: &'a Arriving<'a>,
        email: &'a EmailRecord,
    ) -> HookFuture<'a> {
        Box::pin(Arrived { app, arriving, email }.follow(tx))
    }
}

/// A message that has just arrived.
struct Arrived<'a> {
    app: &'a App,
    arriving: &'a Arriving<'a>,
    email: &'a EmailRecord,
}

impl Arrived<'_> {
    async fn follow(self, tx: &mut Tx) -> Result<()> {
        // What is dangerous or spam leads to nothing.
        let trusted =
            self.email.folder_id != SystemFolder::Spam && self.arriving.verdict != ScanStatus::Flagged;
        if !self.arriving.came_in() || !trusted || self.turn_back(tx).await? {
            return Ok(());
        }
        self.forward(tx).await?;
        self.answer(tx).await
    }

    /// Rewrites the senders of mail that this mailbox passes on. The rewritten sender is a tag of the mailbox's own
    /// address, so that reports about it come here, and from here to whom they are for.
    fn srs(&self) -> Option<Srs> {
        let (_, domain) = self.own_address().rsplit_once('@')?;
        Srs::new(domain, &[&self.arriving.key.mark_key("forwarded sender")[..]])
    }

    /// The sender that a copy leaves with; the mailbox itself where a rewritten one would be too long.
    fn forwarding_sender(&self) -> Option<String> {
        let sender = self.arriving.sender?;
        let rewritten = self.srs().and_then(|srs| srs.forward(sender, seconds(self.arriving.now)).ok());
        let tagged = rewritten.and_then(|rewritten| {
            let (local, domain) = self.own_address().rsplit_once('@')?;
            match rewritten.strip_suffix(domain).and_then(|rest| rest.strip_suffix('@')) {
                Some(tag) if rewritten != sender => Address::parse(&format!("{local}+{tag}@{domain}")).ok(),
                _ => None,
            }
        });
        Some(tagged.map_or_else(|| self.own_address().to_owned(), |tagged| tagged.to_string()))
    }

    /// Sends a report about a copy on to the sender of the mail that was copied. True when it was one.
    async fn turn_back(&self, tx: &mut Tx) -> Result<bool> {
        if self.arriving.sender.is_some() {
            return Ok(false);
        }
        let Ok(address) = Address::parse(&self.arriving.recipient.address) else { return Ok(false) };
        let (Some(tag), Some(srs)) = (address.tag(), self.srs()) else { return Ok(false) };
        let rewritten = format!("{tag}@{}", address.domain());
        let Ok(original) = srs.reverse(&rewritten, seconds(self.arriving.now)) else { return Ok(false) };
        if !self.went_round() {
            self.pass_on(tx, &original, None).await?;
        }
        Ok(true)
    }

    fn own_address(&self) -> &str {
        &self.arriving.mailbox.email
    }

    async fn forward(&self, tx: &mut Tx) -> Result<()> {
        let forwarding = &self.arriving.mailbox.settings.forwarding;
        let Some(to) = forwarding.email.as_ref().filter(|_| forwarding.enabled) else { return Ok(()) };
        if to.without_tag().as_str() == self.own_address() || self.went_round() {
            return Ok(());
        }
        self.pass_on(tx, &to.to_string(), self.forwarding_sender()).await
    }

    /// Puts the mail as it came into the queue for somebody else.
    async fn pass_on(&self, tx: &mut Tx, to: &str, sender: Option<String>) -> Result<()> {
        let (app, now) = (self.app, self.arriving.now);
        let plan = self.arriving.recipient.plan;
        let leaves_at = quota::automatic_not_before(tx, app, plan, now).await?.unwrap_or(now);
        quota::take_automatic(tx, app, plan, leaves_at).await?;
        let prefix = format!(
            "Received: by {}; {}\r\n{LOOP_HEADER}: {}\r\n",
            app.settings().hostname,
            rfc2822(now),
            self.own_address()
        );
        let record = OutboundRecord {
            id: app.new_uuid().simple().to_string(),
            mailbox_id: Some(self.arriving.recipient.mailbox.clone()),
            email_id: None,
            kind: OutboundKind::Forward,
            content_id: self.arriving.content_id.to_owned(),
            prefix,
            sender,
            message_id: self.email.message_id.clone(),
            created_at: now,
            expires_at: now.plus_seconds(app.settings().outbound.retry_seconds),
            report: ReportState::None,
        };
        Ok(outbound::insert(tx, &record, &[queued(to, leaves_at)]).await?)
    }

    /// Whether this mailbox passed the mail on before.
    fn went_round(&self) -> bool {
        let headers = &self.arriving.message.headers;
        headers.lines().filter_map(|line| line.split_once(':')).any(|(name, value)| {
            name.eq_ignore_ascii_case(LOOP_HEADER) && value.trim().eq_ignore_ascii_case(self.own_address())
        })
    }

    async fn answer(&self, tx: &mut Tx) -> Result<()> {
        let settings = &self.arriving.mailbox.settings;
        if !settings.auto_reply.enabled || settings.auto_reply.message.trim().is_empty() {
            return Ok(());
        }
        let message = self.arriving.message;
        let Ok(to) = may_answer(message, self.arriving.sender, &[self.own_address()]) else { return Ok(()) };
        let (app, now) = (self.app, self.arriving.now);
        let plan = self.arriving.recipient.plan;
        if quota::automatic_not_before(tx, app, plan, now).await?.is_some() {
            return Ok(());
        }
        let hashed: [u8; 32] = Sha256::digest(to.as_str()).into();
        let mailbox = &self.arriving.recipient.mailbox;
        let not_after = now.plus_seconds(-ANSWER_PAUSE_SECONDS);
        if !send_limits::note_auto_reply(tx, mailbox, &hashed, now, not_after).await? {
            return Ok(());
        }
        quota::take_automatic(tx, app, plan, now).await?;
        let written = self.written(settings, &to);
        let mail = Automatic {
            kind: OutboundKind::AutoReply,
            mailbox: Some(mailbox.clone()),
            sender: None,
            to,
            written,
        };
        mail.enqueue(tx, app, self.arriving.key, now).await
    }

    fn written(&self, settings: &MailboxSettings, to: &Address) -> UnencodedMessage {
        let message = self.arriving.message;
        let subject = settings.auto_reply.subject.trim();
        let threading = quote::threading(
            message.message_id.as_deref(),
            message.in_reply_to.as_deref(),
            &message.references,
        );
        let name = Some(settings.from_name.trim()).filter(|name| !name.is_empty());
        let (app, now) = (self.app, self.arriving.now);
        let domain = self.own_address().rsplit_once('@').map_or("localhost", |(_, domain)| domain);
        UnencodedMessage {
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
            ..UnencodedMessage::default()
        }
    }
}

/// The subject of an answer to a stranger's mail, short enough for any header.
fn short_reply_subject(original: &str) -> String {
    let clean: String = original.chars().filter(|c| !c.is_control()).take(150).collect();
    quote::reply_subject(&clean)
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
    kind: OutboundKind,
    mailbox: Option<MailboxId>,
    sender: Option<String>,
    to: Address,
    written: UnencodedMessage,
}

impl Automatic {
    async fn enqueue(self, tx: &mut Tx, app: &App, key: &DataKey, now: Timestamp) -> Result<()> {
        // What cannot be written, such as an answer to a subject that is too long, must not stop what it follows from.
        let raw = match compose::compose(&self.written) {
            Ok(raw) => raw,
            Err(error) => {
                tracing::warn!(%error, kind = self.kind.as_str(), "an automatic mail cannot be written");
                return Ok(());
            }
        };
        let id = BlobHash::of(&raw).as_str().to_owned();
        let body = self.written.text.unwrap_or_default();
        let content = ContentRecord {
            size: i64::try_from(raw.len()).unwrap_or(i64::MAX),
            raw: StoredPart::InRow(contents::seal(key, &id, Part::Raw, &raw)?),
            headers: None,
            body: StoredPart::InRow(contents::seal(key, &id, Part::Body, body.as_bytes())?),
            safe: None,
            id,
        };
        contents::insert(tx, &content, now).await?;
        let record = OutboundRecord {
            id: app.new_uuid().simple().to_string(),
            mailbox_id: self.mailbox,
            email_id: None,
            kind: self.kind,
            content_id: content.id,
            prefix: String::new(),
            sender: self.sender,
            message_id: Some(self.written.message_id),
            created_at: now,
            expires_at: now.plus_seconds(app.settings().outbound.retry_seconds),
            report: ReportState::None,
        };
        Ok(outbound::insert(tx, &record, &[queued(&self.to.to_string(), now)]).await?)
    }
}

/// Puts a mail of the service itself into the queue of a workspace. Whatever else the transaction does, the mail leaves if and only if that happens.
pub(crate) async fn enqueue_system(
    tx: &mut Tx,
    app: &App,
    key: &DataKey,
    to: &str,
    subject: String,
    text: String,
) -> Result<()> {
    let to = Address::parse(to).map_err(Error::internal)?;
    let Some(domain) = app.settings().hosted_domains.first() else { return Ok(()) };
    let address = format!("postmaster@{domain}");
    let now = app.now();
    let written = UnencodedMessage {
        message_id: format!("{}@{domain}", app.new_uuid().simple()),
        date: now.as_micros(),
        from: Person { name: Some("Agent Mailbox".to_owned()), address },
        to: vec![Person { name: None, address: to.to_string() }],
        subject,
        text: Some(text),
        auto_submitted: Some(AutoSubmitted::Generated),
        ..UnencodedMessage::default()
    };
    Automatic { kind: OutboundKind::System, mailbox: None, sender: None, to, written }
        .enqueue(tx, app, key, now)
        .await
}

fn seconds(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(1_000_000)
}

fn rfc2822(at: Timestamp) -> String {
    let micros = jiff::Timestamp::from_microsecond(at.as_micros()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    jiff::fmt::rfc2822::to_string(&micros.to_zoned(jiff::tz::TimeZone::UTC)).unwrap_or_default()
}
