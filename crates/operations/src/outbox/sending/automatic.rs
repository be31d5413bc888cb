//! Automatic messages: forwarded copies, auto-replies, and messages of the service itself.
//!
//! They are queued in the transaction of their cause, so that a crash neither loses nor duplicates them.

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
    send_policies::gate::{Clearance, ReviewState, Verdict},
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

use super::{
    gate::{Candidate, Gate, NamedRecipient},
    quota,
};
use crate::core::{
    app::{App, ArrivalHook, HookFuture},
    arriving::Arriving,
    error::{Error, Result},
};

/// How long a sender gets no second auto-reply.
const AUTO_REPLY_INTERVAL_SECONDS: i64 = 7 * 86_400;
/// The header that detects a copy that looped back.
const LOOP_HEADER: &str = "X-Loop";
/// How often the send policies are asked about one message as of a later time.
const MAX_DELAYS: usize = 4;

/// Queues the forwarded copy and the auto-reply of a mailbox's settings.
pub(crate) struct AutomaticMessages;

impl ArrivalHook for AutomaticMessages {
    fn after_arrival<'a>(
        &'a self,
        tx: &'a mut Tx,
        app: &'a App,
        arriving: &'a Arriving<'a>,
        email: &'a EmailRecord,
    ) -> HookFuture<'a> {
        Box::pin(ArrivedMessage { app, arriving, email }.run(tx))
    }
}

/// A message that has just arrived.
struct ArrivedMessage<'a> {
    app: &'a App,
    arriving: &'a Arriving<'a>,
    email: &'a EmailRecord,
}

impl ArrivedMessage<'_> {
    async fn run(self, tx: &mut Tx) -> Result<()> {
        // Dangerous mail and spam trigger nothing.
        let trusted =
            self.email.folder_id != SystemFolder::Spam && self.arriving.verdict != ScanStatus::Flagged;
        if !self.arriving.came_in() || !trusted || self.return_report(tx).await? {
            return Ok(());
        }
        self.forward(tx).await?;
        self.answer(tx).await
    }

    /// Rewrites the envelope senders of forwarded copies (SRS). The rewritten sender is a tag of the mailbox's own
    /// address, so that bounce reports come here and can be returned to the original sender.
    fn srs(&self) -> Option<Srs> {
        let (_, domain) = self.own_address().rsplit_once('@')?;
        Srs::new(domain, &[&self.arriving.key.mac_key("forwarded sender")[..]])
    }

    /// The envelope sender of a copy; the mailbox itself where a rewritten one would be too long.
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

    /// Returns a report about a copy to the sender of the original. True when it was one.
    async fn return_report(&self, tx: &mut Tx) -> Result<bool> {
        if self.arriving.sender.is_some() {
            return Ok(false);
        }
        let Ok(address) = Address::parse(&self.arriving.recipient.address) else { return Ok(false) };
        let (Some(tag), Some(srs)) = (address.tag(), self.srs()) else { return Ok(false) };
        let rewritten = format!("{tag}@{}", address.domain());
        let Ok(original) = srs.reverse(&rewritten, seconds(self.arriving.now)) else { return Ok(false) };
        if !self.is_loop() {
            let id = self.app.new_uuid().simple().to_string();
            let clearance = Clearance::of_returned_report(&id, OutboundKind::Forward, None);
            let clearance = clearance.ok_or_else(|| Error::internal("a returned report has no sender"))?;
            self.enqueue_copy(tx, (id, clearance, self.arriving.now), &original, None).await?;
        }
        Ok(true)
    }

    fn own_address(&self) -> &str {
        &self.arriving.mailbox.email
    }

    async fn forward(&self, tx: &mut Tx) -> Result<()> {
        let forwarding = &self.arriving.mailbox.settings.forwarding;
        let Some(to) = forwarding.email.as_ref().filter(|_| forwarding.enabled) else { return Ok(()) };
        if to.without_tag().as_str() == self.own_address() || self.is_loop() {
            return Ok(());
        }
        let Some(cleared) = self.clear(tx, to.as_str()).await? else { return Ok(()) };
        self.enqueue_copy(tx, cleared, &to.to_string(), self.forwarding_sender()).await
    }

    /// Asks the send policies about a message to an address: its name in the queue, the right to queue it, and when it may
    /// leave. Nobody can be asked to review what is sent automatically.
    async fn clear(&self, tx: &mut Tx, to: &str) -> Result<Option<(String, Clearance, Timestamp)>> {
        let (app, mailbox) = (self.app, &self.arriving.recipient.mailbox);
        let gate = Gate::load(tx, app, mailbox).await?;
        let id = app.new_uuid().simple().to_string();
        let recipients =
            [NamedRecipient { path: "to[0]".to_owned(), address: to.to_lowercase(), is_here: false }];
        let mut at = self.arriving.now;
        // Quiet hours end and caps have room again: it is asked as of then.
        for _ in 0..MAX_DELAYS {
            let candidate = Candidate {
                id: &id,
                recipients: &recipients,
                review: ReviewState::Impossible,
                content: None,
                digest: "",
                now: at,
            };
            let decision = gate.decide(tx, candidate).await?;
            match &decision.verdict {
                Verdict::Send(clearance) => {
                    decision.count(tx).await?;
                    return Ok(Some((id, clearance.clone(), at)));
                }
                Verdict::Schedule(later) | Verdict::Capped(later) if *later > at => at = *later,
                _ => break,
            }
        }
        tracing::info!(%mailbox, %to, "automatic message withheld by the send policy");
        Ok(None)
    }

    /// Queues the message as it came for another recipient.
    async fn enqueue_copy(
        &self,
        tx: &mut Tx,
        (id, clearance, not_before): (String, Clearance, Timestamp),
        to: &str,
        sender: Option<String>,
    ) -> Result<()> {
        let (app, now) = (self.app, self.arriving.now);
        let plan = self.arriving.recipient.plan;
        let leaves_at = quota::automatic_not_before(tx, app, plan, now).await?.unwrap_or(now).max(not_before);
        quota::count_automatic(tx, app, plan, leaves_at).await?;
        let prefix = format!(
            "Received: by {}; {}\r\n{LOOP_HEADER}: {}\r\n",
            app.settings().hostname,
            rfc2822(now),
            self.own_address()
        );
        let record = OutboundRecord {
            id,
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
        Ok(outbound::insert(tx, &record, &[queued(to, leaves_at)], &clearance).await?)
    }

    /// Whether this mailbox forwarded the message before.
    fn is_loop(&self) -> bool {
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
        let not_after = now.plus_seconds(-AUTO_REPLY_INTERVAL_SECONDS);
        if !send_limits::record_auto_reply(tx, mailbox, &hashed, now, not_after).await? {
            return Ok(());
        }
        let Some(cleared) = self.clear(tx, to.as_str()).await? else { return Ok(()) };
        quota::count_automatic(tx, app, plan, now).await?;
        let written = self.compose_reply(settings, &to);
        let mail = AutomaticMessage {
            kind: OutboundKind::AutoReply,
            mailbox: Some(mailbox.clone()),
            sender: None,
            to,
            written,
        };
        mail.enqueue(tx, app, self.arriving.key, cleared).await
    }

    fn compose_reply(&self, settings: &MailboxSettings, to: &Address) -> UnencodedMessage {
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

/// The subject of a reply to a stranger's message, short enough for any header.
fn short_reply_subject(original: &str) -> String {
    let clean: String = original.chars().filter(|c| !c.is_control()).take(150).collect();
    quote::reply_subject(&clean)
}

/// A record that the worker finds the route for.
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
        class: None,
        suppressed: false,
    }
}

/// A message written by the service, to be queued.
struct AutomaticMessage {
    kind: OutboundKind,
    mailbox: Option<MailboxId>,
    sender: Option<String>,
    to: Address,
    written: UnencodedMessage,
}

impl AutomaticMessage {
    async fn enqueue(
        self,
        tx: &mut Tx,
        app: &App,
        key: &DataKey,
        (id, clearance, leaves_at): (String, Clearance, Timestamp),
    ) -> Result<()> {
        let now = app.now();
        // A message that cannot be composed, such as a reply to an overlong subject, must not fail its cause.
        let raw = match compose::compose(&self.written) {
            Ok(raw) => raw,
            Err(error) => {
                tracing::warn!(%error, kind = self.kind.as_str(), "automatic message not composed; giving up");
                return Ok(());
            }
        };
        let content_id = BlobHash::of(&raw).as_str().to_owned();
        let body = self.written.text.unwrap_or_default();
        let content = ContentRecord {
            size: i64::try_from(raw.len()).unwrap_or(i64::MAX),
            raw: StoredPart::InRow(contents::seal(key, &content_id, Part::Raw, &raw)?),
            headers: None,
            body: StoredPart::InRow(contents::seal(key, &content_id, Part::Body, body.as_bytes())?),
            safe: None,
            id: content_id,
        };
        contents::insert(tx, &content, now).await?;
        let record = OutboundRecord {
            id,
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
        Ok(outbound::insert(tx, &record, &[queued(&self.to.to_string(), leaves_at)], &clearance).await?)
    }
}

/// Queues a message of the service itself for a workspace. It is sent if and only if the transaction commits.
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
    let id = app.new_uuid().simple().to_string();
    let clearance = Clearance::of_service(&id, OutboundKind::System);
    let clearance = clearance.ok_or_else(|| Error::internal("a message of the service is not cleared"))?;
    AutomaticMessage { kind: OutboundKind::System, mailbox: None, sender: None, to, written }
        .enqueue(tx, app, key, (id, clearance, now))
        .await
}

fn seconds(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(1_000_000)
}

fn rfc2822(at: Timestamp) -> String {
    let micros = jiff::Timestamp::from_microsecond(at.as_micros()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    jiff::fmt::rfc2822::to_string(&micros.to_zoned(jiff::tz::TimeZone::UTC)).unwrap_or_default()
}
