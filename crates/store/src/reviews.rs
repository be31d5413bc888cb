//! Reviews of outgoing messages, and the links in mails by which people decide about them.

use std::fmt::Write as _;

use model::{
    AccountId, EmailId, MailboxId, ReviewId, Timestamp, WorkspaceId,
    reviews::{ReviewFinding, ReviewState, SendRequest},
    send_policies::PolicyFinding,
};

use crate::{
    FromRow, Param, Row, SystemTx, Topic, Tx,
    error::Result,
    sql::{Columns, Insert, columns, update_row},
};

/// A review as it is stored.
#[derive(Clone, Debug)]
pub struct ReviewRecord {
    /// Its id.
    pub id: ReviewId,
    /// The mailbox that the message is sent from.
    pub mailbox_id: MailboxId,
    /// The message.
    pub email_id: EmailId,
    /// Its state.
    pub state: ReviewState,
    /// Why a person is asked.
    pub reasons: Vec<PolicyFinding>,
    /// What was found in the contents.
    pub findings: Vec<ReviewFinding>,
    /// The key, account, wallet or chat whose message it is.
    pub requested_by: String,
    /// More about that, and what was charged.
    pub request: SendRequest,
    /// Names the message as it is now.
    pub digest: String,
    /// When the message was to be sent, if it was scheduled.
    pub scheduled_at: Option<Timestamp>,
    /// When it is rejected if nobody decides.
    pub expires_at: Timestamp,
    /// Who decided.
    pub decided_by: Option<String>,
    /// When.
    pub decided_at: Option<Timestamp>,
    /// Why, in their words.
    pub reason: Option<String>,
    /// When the review was requested.
    pub created_at: Timestamp,
}

columns!(ReviewRecord {
    id,
    mailbox_id,
    email_id,
    state,
    reasons as json,
    findings as json,
    requested_by,
    request as json,
    digest,
    scheduled_at,
    expires_at,
    decided_by,
    decided_at,
    reason,
    created_at,
});

/// Adds a review.
pub async fn insert(tx: &mut Tx, review: &ReviewRecord) -> Result<()> {
    Insert::into("review").record(review).run(tx).await?;
    tx.wake(Topic::Schedule, None);
    Ok(())
}

/// Stores a review that was changed.
pub async fn update(tx: &mut Tx, review: &ReviewRecord) -> Result<()> {
    update_row(tx, "review", &[("id", (&review.id).into())], review).await?;
    Ok(())
}

/// Sets the state of a review.
pub async fn set_state(tx: &mut Tx, id: &ReviewId, state: ReviewState) -> Result<()> {
    tx.run("UPDATE review SET state = $3 WHERE workspace_id = $1 AND id = $2", &[id.into(), state.into()])
        .await?;
    Ok(())
}

/// Finds a review.
pub async fn find(tx: &mut Tx, id: &ReviewId) -> Result<Option<ReviewRecord>> {
    let sql = format!("SELECT {} FROM review WHERE workspace_id = $1 AND id = $2", ReviewRecord::COLUMNS);
    tx.one(&sql, &[id.into()]).await
}

/// The same, with the row locked until the transaction ends. It comes after the lock of the mailbox.
pub async fn find_for_change(tx: &mut Tx, id: &ReviewId) -> Result<Option<ReviewRecord>> {
    let (columns, lock) = (ReviewRecord::COLUMNS, tx.for_update());
    let sql = format!("SELECT {columns} FROM review WHERE workspace_id = $1 AND id = $2{lock}");
    tx.one(&sql, &[id.into()]).await
}

/// The latest reviews of one message, newest first: a rejected message can be sent again.
pub async fn list_of_email(
    tx: &mut Tx,
    mailbox: &MailboxId,
    email: &EmailId,
    most: i64,
) -> Result<Vec<ReviewRecord>> {
    let sql = format!(
        "SELECT {} FROM review WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3 ORDER BY id DESC LIMIT $4",
        ReviewRecord::COLUMNS
    );
    tx.all(&sql, &[mailbox.into(), email.into(), most.into()]).await
}

/// Which reviews a list shows.
#[derive(Clone, Debug, Default)]
pub struct ReviewFilter {
    /// Only those in this state.
    pub state: Option<ReviewState>,
    /// Only those of these mailboxes.
    pub mailboxes: Option<Vec<MailboxId>>,
    /// Only those of this requester.
    pub requested_by: Option<String>,
}

impl ReviewFilter {
    /// The conditions, and their parameters from `$2` on.
    fn conditions(&self) -> (String, Vec<Param<'_>>) {
        let (mut sql, mut params) = (String::new(), Vec::new());
        if let Some(state) = &self.state {
            params.push((*state).into());
            let _ = write!(sql, " AND state = ${}", params.len() + 1);
        }
        if let Some(mailboxes) = &self.mailboxes {
            let first = params.len() + 2;
            params.extend(mailboxes.iter().map(Param::from));
            let names: Vec<String> = (first..params.len() + 2).map(|number| format!("${number}")).collect();
            // No mailbox has an empty id.
            let names = if names.is_empty() { "''".to_owned() } else { names.join(", ") };
            let _ = write!(sql, " AND mailbox_id IN ({names})");
        }
        if let Some(requester) = &self.requested_by {
            params.push(requester.into());
            let _ = write!(sql, " AND requested_by = ${}", params.len() + 1);
        }
        (sql, params)
    }
}

/// Reviews, newest first, before the one with the given id.
pub async fn list(
    tx: &mut Tx,
    filter: &ReviewFilter,
    before: Option<&ReviewId>,
    most: i64,
) -> Result<Vec<ReviewRecord>> {
    let (mut conditions, mut params) = filter.conditions();
    if let Some(before) = before {
        params.push(before.into());
        let _ = write!(conditions, " AND id < ${}", params.len() + 1);
    }
    params.push(most.into());
    let sql = format!(
        "SELECT {} FROM review WHERE workspace_id = $1{conditions} ORDER BY id DESC LIMIT ${}",
        ReviewRecord::COLUMNS,
        params.len() + 1
    );
    tx.all(&sql, &params).await
}

/// How many reviews there are.
pub async fn count(tx: &mut Tx, filter: &ReviewFilter) -> Result<i64> {
    let (conditions, params) = filter.conditions();
    let sql = format!("SELECT count(*) FROM review WHERE workspace_id = $1{conditions}");
    Ok(tx.one::<(i64,)>(&sql, &params).await?.map_or(0, |(count,)| count))
}

/// Pending reviews whose time is up.
pub async fn expired(tx: &mut SystemTx, now: Timestamp, most: i64) -> Result<Vec<(WorkspaceId, ReviewId)>> {
    let sql = "SELECT workspace_id, id FROM review WHERE state = 'pending' AND expires_at <= $1
         ORDER BY expires_at LIMIT $2";
    tx.all(sql, &[now.into(), most.into()]).await
}

/// When the next pending review expires.
pub async fn next_expiry(tx: &mut SystemTx) -> Result<Option<Timestamp>> {
    let sql = "SELECT expires_at FROM review WHERE state = 'pending' ORDER BY expires_at LIMIT 1";
    Ok(tx.one::<(Timestamp,)>(sql, &[]).await?.map(|(at,)| at))
}

/// An admin who gets a mail about new reviews.
#[derive(Clone, Debug)]
pub struct ReviewWatcher {
    /// The account.
    pub account: AccountId,
    /// Its address.
    pub email: String,
}

impl FromRow for ReviewWatcher {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self { account: row.next()?, email: row.next()? })
    }
}

/// The admins who get a mail about new reviews.
pub async fn watchers(tx: &mut Tx) -> Result<Vec<ReviewWatcher>> {
    let sql = "SELECT account.id, account.email FROM member JOIN account ON account.id = member.account_id
         WHERE member.workspace_id = $1 AND member.role = 'admin' AND member.review_mail = 1 ORDER BY account.id";
    tx.all(sql, &[]).await
}

/// Whether a member gets a mail about new reviews.
pub async fn is_watching(tx: &mut Tx, account: &AccountId) -> Result<bool> {
    let sql = "SELECT review_mail FROM member WHERE workspace_id = $1 AND account_id = $2";
    Ok(tx.one::<(i64,)>(sql, &[account.into()]).await?.is_some_and(|(on,)| on == 1))
}

/// Sets whether a member gets a mail about new reviews.
pub async fn set_watching(tx: &mut Tx, account: &AccountId, on: bool) -> Result<()> {
    let sql = "UPDATE member SET review_mail = $3 WHERE workspace_id = $1 AND account_id = $2";
    tx.run(sql, &[account.into(), on.into()]).await?;
    Ok(())
}

/// Adds a link by which an account can decide about a review.
pub async fn insert_link(
    tx: &mut Tx,
    review: &ReviewId,
    account: &AccountId,
    token_hash: &[u8],
) -> Result<()> {
    Insert::into("review_link")
        .column("token_hash", token_hash)
        .column("review_id", review)
        .column("account_id", account)
        .run(tx)
        .await?;
    Ok(())
}

/// Deletes the links of a review that is decided.
pub async fn delete_links(tx: &mut Tx, review: &ReviewId) -> Result<()> {
    tx.run("DELETE FROM review_link WHERE workspace_id = $1 AND review_id = $2", &[review.into()]).await?;
    Ok(())
}

/// What a link is for: the workspace, the review and the account.
pub async fn find_link(
    tx: &mut SystemTx,
    token_hash: &[u8],
) -> Result<Option<(WorkspaceId, ReviewId, AccountId)>> {
    let sql = "SELECT workspace_id, review_id, account_id FROM review_link WHERE token_hash = $1";
    tx.one(sql, &[token_hash.into()]).await
}
