//! Outgoing messages: one row per message, one queue entry per recipient.

use model::{
    EmailId, MailboxId, Timestamp,
    outbound::{OutboundKind, ReportState},
    send_policies::gate::Clearance,
    sending::{FailureClass, RecipientLine, RecipientState},
};

use crate::{
    AnySelect, FromRow, Param, Row, Select, Topic, Tx,
    contents::{self, ContentRecord, ContentView as _},
    error::{Error, Result},
    sql::{Columns, Insert, columns},
};

/// An outgoing message as it is stored.
#[derive(Clone, Debug)]
pub struct OutboundRecord {
    /// Its id in the queue.
    pub id: String,
    /// The mailbox it is sent from; `None` for messages of the service itself.
    pub mailbox_id: Option<MailboxId>,
    /// Its email; `None` for automatic messages, and once the email is deleted.
    pub email_id: Option<EmailId>,
    /// Its kind.
    pub kind: OutboundKind,
    /// Its content.
    pub content_id: String,
    /// Header lines that are prepended on transmission.
    pub prefix: String,
    /// The envelope's sender; `None` for a null sender.
    pub sender: Option<String>,
    /// Its Message-ID.
    pub message_id: Option<String>,
    /// When it was queued.
    pub created_at: Timestamp,
    /// Until when delivery is retried.
    pub expires_at: Timestamp,
    /// Whether its sender is to be notified of the failure.
    pub report: ReportState,
}

columns!(OutboundRecord {
    id,
    mailbox_id,
    email_id,
    kind,
    content_id,
    prefix,
    sender,
    message_id,
    created_at,
    expires_at,
    report,
});

pub(crate) const COLUMNS: &str = OutboundRecord::COLUMNS;

/// The delivery to one recipient, as it is stored.
#[derive(Clone, Debug)]
pub struct DeliveryRecord {
    /// Its position among the recipients.
    pub position: i64,
    /// The address.
    pub recipient: String,
    /// The header line that names it.
    pub line: RecipientLine,
    /// The domain that limits and back-off apply to; empty for a mailbox of this server.
    pub destination: String,
    /// Its state.
    pub state: RecipientState,
    /// Number of attempts.
    pub attempts: i64,
    /// When it is tried next.
    pub next_attempt_at: Option<Timestamp>,
    /// When it was last tried.
    pub last_attempt_at: Option<Timestamp>,
    /// When its state became final.
    pub finished_at: Option<Timestamp>,
    /// The last reply of the remote server.
    pub reply: Option<String>,
    /// Why it failed, or is late.
    pub class: Option<FailureClass>,
    /// Whether it was left out because the address is suppressed. Its state is `bounced` then.
    pub suppressed: bool,
}

impl DeliveryRecord {
    /// Whether it was tried, and failed for good.
    pub fn is_failed(&self) -> bool {
        self.state == RecipientState::Bounced && !self.suppressed
    }

    /// The state as it is shown.
    pub fn shown_state(&self) -> RecipientState {
        if self.suppressed { RecipientState::Suppressed } else { self.state }
    }
}

columns!(DeliveryRecord {
    position,
    recipient,
    line,
    destination,
    state,
    attempts,
    next_attempt_at,
    last_attempt_at,
    finished_at,
    reply,
    class,
    suppressed,
});

/// Adds a message, whose content must exist, with its recipients. Wakes the workers if a recipient is pending.
pub async fn insert(
    tx: &mut Tx,
    mail: &OutboundRecord,
    recipients: &[DeliveryRecord],
    clearance: &Clearance,
) -> Result<()> {
    insert_all(tx, &[NewOutbound { mail, recipients, claim: None, clearance }]).await
}

/// A message to be queued.
#[derive(Clone, Copy, Debug)]
pub struct NewOutbound<'a> {
    /// The message.
    pub mail: &'a OutboundRecord,
    /// Its recipients.
    pub recipients: &'a [DeliveryRecord],
    /// The node that delivers it at once, if one does, and until when the node has claimed its pending recipients.
    pub claim: Option<(&'a str, Timestamp)>,
    /// What the gate of send policies gave it.
    pub clearance: &'a Clearance,
}

impl NewOutbound<'_> {
    /// Refuses a message that the gate of send policies has not let through to these recipients.
    fn require_clearance(&self) -> Result<()> {
        let sent_to = self.recipients.iter().filter(|one| !one.suppressed);
        let recipients = sent_to.map(|one| one.recipient.as_str());
        if self.clearance.is_for(&self.mail.id, recipients) {
            Ok(())
        } else {
            Err(Error::Internal("a message is queued that the gate did not let through".into()))
        }
    }

    fn deliveries(&self) -> impl Iterator<Item = Insert<'_>> {
        self.recipients.iter().map(|one| {
            let claim = self.claim.filter(|_| one.state == RecipientState::Queued);
            Insert::into("delivery")
                .column("outbound_id", &*self.mail.id)
                .record(one)
                .column("claimed_by", claim.map(|(node, _)| node))
                .column("claimed_until", claim.map(|(_, until)| until))
        })
    }

    /// Whether a worker has to look at it.
    fn waits(&self) -> bool {
        let is_pending = self.recipients.iter().any(|one| one.state == RecipientState::Queued);
        self.mail.report == ReportState::Due || (is_pending && self.claim.is_none())
    }
}

/// The same for several messages.
pub async fn insert_all(tx: &mut Tx, messages: &[NewOutbound<'_>]) -> Result<()> {
    messages.iter().try_for_each(NewOutbound::require_clearance)?;
    let rows = messages.iter().map(|one| Insert::into("outbound").record(one.mail)).collect();
    Insert::pipeline_all(tx, rows).await?;
    Insert::pipeline_all(tx, messages.iter().flat_map(NewOutbound::deliveries).collect()).await?;
    if messages.iter().any(NewOutbound::waits) {
        tx.wake(Topic::Queue, None);
    }
    Ok(())
}

/// Finds a queued message by its id.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<OutboundRecord>> {
    tx.one(&format!("SELECT {COLUMNS} FROM outbound WHERE workspace_id = $1 AND id = $2"), &[id.into()]).await
}

/// The same, with the row locked until the transaction ends.
pub async fn lock(tx: &mut Tx, id: &str) -> Result<Option<OutboundRecord>> {
    let lock = tx.for_update();
    tx.one(&format!("SELECT {COLUMNS} FROM outbound WHERE workspace_id = $1 AND id = $2{lock}"), &[id.into()])
        .await
}

/// Messages, their recipients and their emails, all of them locked until the transaction ends. Messages that are gone are
/// left out.
///
/// On PostgreSQL it takes one round trip. Several messages are locked without waiting, or it fails: other transactions lock
/// them in other orders.
pub async fn lock_all_with_recipients(
    tx: &mut Tx,
    ids: &[&str],
    emails: &[(&MailboxId, &EmailId)],
) -> Result<Vec<(OutboundRecord, Vec<DeliveryRecord>)>> {
    let mut locked: Vec<(OutboundRecord, Vec<DeliveryRecord>)> = Vec::with_capacity(ids.len());
    if !tx.is_postgres() {
        for id in ids {
            let Some(mail) = find(tx, id).await? else { continue };
            locked.push((mail, recipients(tx, id).await?));
        }
        return Ok(locked);
    }
    let waiting = if ids.len() > 1 { " NOWAIT" } else { "" };
    let sql = format!(
        "SELECT {COLUMNS}, {} FROM outbound JOIN delivery ON delivery.workspace_id = $1
           AND delivery.outbound_id = outbound.id
         WHERE outbound.workspace_id = $1 AND outbound.id = ANY (CAST($2 AS TEXT[]))
         ORDER BY outbound.id, delivery.position FOR NO KEY UPDATE OF outbound, delivery{waiting}",
        DeliveryRecord::COLUMNS
    );
    let ids: Vec<Param<'_>> = ids.iter().map(|id| Param::from(*id)).collect();
    let mut rows: Select<'_, LockedRecipient> = Select::new(sql, vec![Param::List(&ids)]);
    let (mailboxes, emails): (Vec<Param<'_>>, Vec<Param<'_>>) =
        emails.iter().map(|(mailbox, email)| (Param::from(*mailbox), Param::from(*email))).unzip();
    let sql = format!(
        "SELECT email.id FROM UNNEST(CAST($2 AS TEXT[]), CAST($3 AS TEXT[])) AS asked (mailbox_id, id)
         JOIN email ON email.workspace_id = $1 AND email.mailbox_id = asked.mailbox_id AND email.id = asked.id
         FOR NO KEY UPDATE OF email{waiting}"
    );
    let mut locked_emails: Select<'_, (EmailId,)> =
        Select::new(sql, vec![Param::List(&mailboxes), Param::List(&emails)]);
    // The only email can be waited for when it is changed.
    let mut selects: Vec<&mut dyn AnySelect<'_>> = vec![&mut rows];
    if ids.len() > 1 && !emails.is_empty() {
        selects.push(&mut locked_emails);
    }
    tx.select(&mut selects).await?;
    for LockedRecipient { mail, recipient } in rows.rows() {
        match locked.last_mut().filter(|(last, _)| last.id == mail.id) {
            Some((_, recipients)) => recipients.push(recipient),
            None => locked.push((mail, vec![recipient])),
        }
    }
    Ok(locked)
}

/// A message with one of its recipients.
struct LockedRecipient {
    mail: OutboundRecord,
    recipient: DeliveryRecord,
}

impl FromRow for LockedRecipient {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self { mail: OutboundRecord::from_row(row)?, recipient: DeliveryRecord::from_row(row)? })
    }
}

/// A message as its delivery needs it: with its content, and with the recipients that a node has claimed at least until a
/// time.
pub struct ClaimedMessage {
    /// The message.
    pub mail: OutboundRecord,
    /// Its content.
    pub content: ContentRecord,
    /// The positions of these recipients.
    pub claimed: Vec<i64>,
    /// Those of them that must not be written to any more.
    pub suppressed: Vec<i64>,
}

impl FromRow for ClaimedMessage {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        let (claimed, suppressed): (Option<String>, Option<String>) = (row.next()?, row.next()?);
        let mail = OutboundRecord::from_row(row)?;
        let (claimed, suppressed) = (positions(claimed.as_deref()), positions(suppressed.as_deref()));
        Ok(Self { claimed, suppressed, mail, content: ContentRecord::from_row(row)? })
    }
}

/// Positions of recipients, as a statement lists them.
fn positions(list: Option<&str>) -> Vec<i64> {
    list.iter().flat_map(|list| list.split(' ')).filter_map(|text| text.parse().ok()).collect()
}

/// Finds a message to deliver.
pub async fn find_claimed(
    tx: &mut Tx,
    id: &str,
    node: &str,
    until: Timestamp,
) -> Result<Option<ClaimedMessage>> {
    let mail = COLUMNS.replace(", ", ", outbound.");
    let content = ContentRecord::COLUMNS;
    tx.one(
        &format!(
            "SELECT (SELECT string_agg(CAST(position AS TEXT), ' ') FROM delivery WHERE workspace_id = $1
               AND outbound_id = $2 AND state = 'queued' AND claimed_by = $3 AND claimed_until > $4),
               (SELECT string_agg(CAST(position AS TEXT), ' ') FROM delivery WHERE workspace_id = $1
               AND outbound_id = $2 AND state = 'queued' AND outbound.kind = 'mail' AND EXISTS (
                 SELECT 1 FROM suppression WHERE suppression.workspace_id = $1
                 AND suppression.address = lower(delivery.recipient)
                 AND suppression.mailbox_id IN ('', outbound.mailbox_id)
                 AND NOT (delivery.destination = '' AND suppression.reason = 'hard_bounce'))),
               outbound.{mail}, {content}
             FROM outbound JOIN content ON content.workspace_id = $1 AND content.id = outbound.content_id
             WHERE outbound.workspace_id = $1 AND outbound.id = $2"
        ),
        &[id.into(), node.into(), until.into()],
    )
    .await
}

/// Finds the outgoing message of an email.
pub async fn find_of_email(
    tx: &mut Tx,
    mailbox: &MailboxId,
    email: &EmailId,
) -> Result<Option<OutboundRecord>> {
    tx.one(
        &format!(
            "SELECT {COLUMNS} FROM outbound WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3"
        ),
        &[mailbox.into(), email.into()],
    )
    .await
}

/// Finds the message of a mailbox that a report refers to.
pub async fn find_by_message_id(
    tx: &mut Tx,
    mailbox: &MailboxId,
    message_id: &str,
) -> Result<Option<OutboundRecord>> {
    tx.one(
        &format!(
            "SELECT {COLUMNS} FROM outbound WHERE workspace_id = $1 AND mailbox_id = $2 AND message_id = $3
             AND kind = 'mail' LIMIT 1"
        ),
        &[mailbox.into(), message_id.into()],
    )
    .await
}

/// The recipients of a message.
pub async fn recipients(tx: &mut Tx, id: &str) -> Result<Vec<DeliveryRecord>> {
    tx.all(
        &format!(
            "SELECT {} FROM delivery WHERE workspace_id = $1 AND outbound_id = $2 ORDER BY position",
            DeliveryRecord::COLUMNS
        ),
        &[id.into()],
    )
    .await
}

/// What a delivery report says about a recipient.
#[derive(Clone, Debug)]
pub struct ReportedState {
    /// Its position among the recipients.
    pub position: i64,
    /// Its state.
    pub state: RecipientState,
    /// What its server said.
    pub reply: Option<String>,
    /// Why it failed.
    pub class: Option<FailureClass>,
}

/// Records what a delivery report says about a recipient.
pub async fn set_state(tx: &mut Tx, id: &str, reported: &ReportedState, now: Timestamp) -> Result<()> {
    let ReportedState { position, state, reply, class } = reported;
    tx.run(
        "UPDATE delivery SET state = $4, reply = coalesce($5, reply), finished_at = $6, next_attempt_at = NULL,
           class = $7
         WHERE workspace_id = $1 AND outbound_id = $2 AND position = $3",
        &[
            id.into(),
            (*position).into(),
            (*state).into(),
            reply.as_deref().into(),
            now.into(),
            class.map(FailureClass::as_str).into(),
        ],
    )
    .await?;
    Ok(())
}

/// Sets whether the sender of a message is to be notified of the failure.
pub async fn set_report(tx: &mut Tx, id: &str, report: ReportState) -> Result<()> {
    tx.run(
        "UPDATE outbound SET report = $3 WHERE workspace_id = $1 AND id = $2",
        &[id.into(), report.into()],
    )
    .await?;
    Ok(())
}

/// Removes a message from the queue, and its content if nothing else uses it.
pub async fn delete(tx: &mut Tx, mail: &OutboundRecord) -> Result<()> {
    tx.run("DELETE FROM outbound WHERE workspace_id = $1 AND id = $2", &[(&mail.id).into()]).await?;
    contents::release(tx, std::slice::from_ref(&mail.content_id)).await
}

/// Detaches the outgoing message from a deleted email. One with pending recipients stays in the queue.
pub(crate) async fn detach_email(tx: &mut Tx, mailbox: &MailboxId, email: &EmailId) -> Result<()> {
    tx.run(
        "DELETE FROM outbound WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3 AND report <> 'due'
         AND NOT EXISTS (SELECT 1 FROM delivery WHERE delivery.workspace_id = $1
           AND delivery.outbound_id = outbound.id AND delivery.state = 'queued')",
        &[mailbox.into(), email.into()],
    )
    .await?;
    tx.run(
        "UPDATE outbound SET email_id = NULL WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3",
        &[mailbox.into(), email.into()],
    )
    .await?;
    Ok(())
}
