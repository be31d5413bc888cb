//! Used payment proofs, wallets and their workspaces, and the ledger of test networks.
//!
//! These tables span workspaces: a proof is claimed before its workspace is known. Stored responses are sealed.

use model::{
    PaymentId, Timestamp, WorkspaceId,
    payments::{PaymentState, Protocol},
};

use crate::{FromRow, Row, SystemTx, Tx, error::Result};

/// The key that makes a proof usable once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PaymentKey {
    /// The network.
    pub network: String,
    /// The token; `siwx` for a sign-in.
    pub asset: String,
    /// The wallet, in lower case.
    pub payer: String,
    /// The nonce.
    pub nonce: String,
}

/// A proof that was used.
#[derive(Clone, Debug)]
pub struct PaymentRecord {
    /// What makes it usable once.
    pub key: PaymentKey,
    /// Its id.
    pub id: PaymentId,
    /// The wallet's workspace, once it has one.
    pub workspace_id: Option<WorkspaceId>,
    /// The protocol it came by.
    pub protocol: Protocol,
    /// The operation paid for.
    pub operation: String,
    /// The path of the request.
    pub subject: String,
    /// The hash of the request.
    pub fingerprint: Vec<u8>,
    /// How much, in the token's smallest unit.
    pub amount: i64,
    /// Its state.
    pub state: PaymentState,
    /// Why it failed or is pending.
    pub reason: Option<String>,
    /// The transaction that moved the money.
    pub reference: Option<String>,
    /// The signed proof, sealed, until the money has moved or never will.
    pub proof: Option<Vec<u8>>,
    /// The status of the stored response.
    pub status: Option<i64>,
    /// The stored response of a call that changed nothing, sealed.
    pub answer: Option<Vec<u8>>,
    /// Until when the worker's claim is valid.
    pub claimed_until: Timestamp,
    /// Until when the proof is valid.
    pub expires_at: Timestamp,
    /// When it was claimed.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl FromRow for PaymentRecord {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            key: PaymentKey {
                network: row.next()?,
                asset: row.next()?,
                payer: row.next()?,
                nonce: row.next()?,
            },
            id: row.next()?,
            workspace_id: row.next()?,
            protocol: row.next()?,
            operation: row.next()?,
            subject: row.next()?,
            fingerprint: row.next()?,
            amount: row.next()?,
            state: row.next()?,
            reason: row.next()?,
            reference: row.next()?,
            proof: row.next()?,
            status: row.next()?,
            answer: row.next()?,
            claimed_until: row.next()?,
            expires_at: row.next()?,
            created_at: row.next()?,
            updated_at: row.next()?,
        })
    }
}

const COLUMNS: &str =
    "network, asset, payer, nonce, id, owner_workspace, protocol, operation, subject, fingerprint, amount,
    state, reason, reference, proof, status, answer, claimed_until, expires_at, created_at, updated_at";

/// Claims a proof for one request. False when it was used before.
pub async fn claim(tx: &mut SystemTx, payment: &PaymentRecord) -> Result<bool> {
    let taken = tx
        .run(
            &format!(
                "INSERT INTO payment ({COLUMNS}) VALUES
                 ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $20)
                 ON CONFLICT (network, asset, payer, nonce) DO NOTHING"
            ),
            &[
                (&payment.key.network).into(),
                (&payment.key.asset).into(),
                (&payment.key.payer).into(),
                (&payment.key.nonce).into(),
                (&payment.id).into(),
                payment.workspace_id.as_ref().into(),
                payment.protocol.into(),
                (&payment.operation).into(),
                (&payment.subject).into(),
                payment.fingerprint.as_slice().into(),
                payment.amount.into(),
                payment.state.into(),
                payment.reason.as_deref().into(),
                payment.reference.as_deref().into(),
                payment.proof.as_deref().into(),
                payment.status.into(),
                payment.answer.as_deref().into(),
                payment.claimed_until.into(),
                payment.expires_at.into(),
                payment.created_at.into(),
            ],
        )
        .await?;
    Ok(taken == 1)
}

/// Finds the payment of a proof.
pub async fn find(tx: &mut SystemTx, key: &PaymentKey) -> Result<Option<PaymentRecord>> {
    tx.one(
        &format!(
            "SELECT {COLUMNS} FROM payment WHERE network = $1 AND asset = $2 AND payer = $3 AND nonce = $4"
        ),
        &[(&key.network).into(), (&key.asset).into(), (&key.payer).into(), (&key.nonce).into()],
    )
    .await
}

/// Finds a payment by its id.
pub async fn find_by_id(tx: &mut SystemTx, id: &PaymentId) -> Result<Option<PaymentRecord>> {
    tx.one(&format!("SELECT {COLUMNS} FROM payment WHERE id = $1 AND amount > 0"), &[id.into()]).await
}

/// Claims a payment whose earlier claim has expired. False when another worker was faster.
pub async fn reclaim(
    tx: &mut SystemTx,
    payment: &PaymentRecord,
    until: Timestamp,
    now: Timestamp,
) -> Result<bool> {
    let key = &payment.key;
    let taken = tx
        .run(
            "UPDATE payment SET claimed_until = $5 WHERE network = $1 AND asset = $2 AND payer = $3 AND nonce = $4
             AND claimed_until <= $6 AND state NOT IN ('fulfilled', 'failed')",
            &[
                (&key.network).into(),
                (&key.asset).into(),
                (&key.payer).into(),
                (&key.nonce).into(),
                until.into(),
                now.into(),
            ],
        )
        .await?;
    Ok(taken == 1)
}

/// A change of a payment's state.
#[derive(Clone, Debug)]
pub struct PaymentChange {
    /// The new state.
    pub state: PaymentState,
    /// Why.
    pub reason: Option<String>,
    /// The transaction.
    pub reference: Option<String>,
    /// Whether the signed proof is still needed.
    pub keeps_proof: bool,
    /// Until when the worker's claim is valid.
    pub claimed_until: Timestamp,
    /// When.
    pub now: Timestamp,
}

/// Updates a payment that has not reached a final state.
pub async fn update(tx: &mut SystemTx, key: &PaymentKey, change: &PaymentChange) -> Result<()> {
    let proof = if change.keeps_proof { "proof" } else { "NULL" };
    tx.run(
        &format!(
            "UPDATE payment SET state = $5, reason = $6, reference = coalesce($7, reference), proof = {proof},
             claimed_until = $8, updated_at = $9
             WHERE network = $1 AND asset = $2 AND payer = $3 AND nonce = $4
             AND state NOT IN ('fulfilled', 'failed')"
        ),
        &[
            (&key.network).into(),
            (&key.asset).into(),
            (&key.payer).into(),
            (&key.nonce).into(),
            change.state.into(),
            change.reason.as_deref().into(),
            change.reference.as_deref().into(),
            change.claimed_until.into(),
            change.now.into(),
        ],
    )
    .await?;
    Ok(())
}

/// Records, in the transaction of the paid operation, that it was fulfilled.
pub async fn fulfil(tx: &mut Tx, key: &PaymentKey, now: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE payment SET state = 'fulfilled', reason = NULL, owner_workspace = $1, claimed_until = 0, updated_at = $6
         WHERE network = $2 AND asset = $3 AND payer = $4 AND nonce = $5",
        &[
            (&key.network).into(),
            (&key.asset).into(),
            (&key.payer).into(),
            (&key.nonce).into(),
            now.into(),
        ],
    )
    .await?;
    Ok(())
}

/// The latest expiry of free proofs of a kind that a server without other nodes may have accepted.
pub async fn free_proofs_used_until(tx: &mut SystemTx, kind: &str) -> Result<Timestamp> {
    let found = tx.one("SELECT taken_until FROM free_proof_mark WHERE kind = $1", &[kind.into()]).await?;
    Ok(found.map_or(Timestamp::from_micros(0), |(until,)| until))
}

/// Records that free proofs with a later expiry were accepted.
pub async fn set_free_proofs_used_until(tx: &mut SystemTx, kind: &str, until: Timestamp) -> Result<()> {
    tx.run(
        "INSERT INTO free_proof_mark (kind, taken_until) VALUES ($1, $2) ON CONFLICT (kind) DO UPDATE
         SET taken_until = excluded.taken_until WHERE free_proof_mark.taken_until < excluded.taken_until",
        &[kind.into(), until.into()],
    )
    .await?;
    Ok(())
}

/// Unclaimed payments whose money may be in transit.
pub async fn list_unsettled(tx: &mut SystemTx, now: Timestamp, most: i64) -> Result<Vec<PaymentRecord>> {
    tx.all(
        &format!(
            "SELECT {COLUMNS} FROM payment WHERE proof IS NOT NULL AND claimed_until <= $1
             ORDER BY claimed_until LIMIT $2"
        ),
        &[now.into(), most.into()],
    )
    .await
}

/// Payments with a price, newest first, before the given one.
pub async fn list(
    tx: &mut SystemTx,
    state: Option<PaymentState>,
    payer: Option<&str>,
    most: i64,
) -> Result<Vec<PaymentRecord>> {
    tx.all(
        &format!(
            "SELECT {COLUMNS} FROM payment WHERE amount > 0 AND (CAST($1 AS TEXT) IS NULL OR state = $1)
             AND (CAST($2 AS TEXT) IS NULL OR payer = $2) ORDER BY created_at DESC, id DESC LIMIT $3"
        ),
        &[state.into(), payer.into(), most.into()],
    )
    .await
}

/// Number and total amount of payments with a price, by state.
pub async fn totals(tx: &mut SystemTx) -> Result<Vec<(String, i64, i64)>> {
    tx.all(
        "SELECT state, count(*), CAST(sum(amount) AS BIGINT) FROM payment WHERE amount > 0 GROUP BY state ORDER BY state",
        &[],
    )
    .await
}

/// The workspace of a wallet.
pub async fn find_wallet(tx: &mut SystemTx, address: &str) -> Result<Option<WorkspaceId>> {
    let found = tx.one("SELECT owner_workspace FROM wallet WHERE address = $1", &[address.into()]).await?;
    Ok(found.map(|(workspace,)| workspace))
}

/// Assigns the transaction's workspace to a wallet. False when it already has one.
pub async fn insert_wallet(tx: &mut Tx, address: &str, now: Timestamp) -> Result<bool> {
    let sql = "INSERT INTO wallet (owner_workspace, address, created_at) VALUES ($1, $2, $3)
               ON CONFLICT (address) DO NOTHING";
    Ok(tx.run(sql, &[address.into(), now.into()]).await? == 1)
}

/// A transfer in the ledger.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The payer.
    pub payer: String,
    /// Makes it happen once.
    pub nonce: String,
    /// The recipient.
    pub recipient: String,
    /// How much.
    pub amount: i64,
    /// Its transaction reference.
    pub reference: String,
    /// When.
    pub now: Timestamp,
}

/// The balance of a ledger account; an unused account has the initial gift.
pub async fn balance(tx: &mut SystemTx, address: &str, gift: i64) -> Result<i64> {
    let found = tx.one("SELECT balance FROM ledger_account WHERE address = $1", &[address.into()]).await?;
    Ok(found.map_or(gift, |(balance,)| balance))
}

/// Moves money in the ledger, once per nonce, and returns the reference of that transfer. `None` when the balance is
/// too low.
pub async fn transfer(tx: &mut SystemTx, transfer: &Transfer, gift: i64) -> Result<Option<String>> {
    let open =
        "INSERT INTO ledger_account (address, balance) VALUES ($1, $2) ON CONFLICT (address) DO NOTHING";
    tx.run(open, &[(&transfer.payer).into(), gift.into()]).await?;
    // This locks the payer's row, so that a repeated transfer waits for the first.
    let lock_payer = "UPDATE ledger_account SET balance = balance WHERE address = $1";
    tx.run(lock_payer, &[(&transfer.payer).into()]).await?;
    let known: Option<(String,)> = tx
        .one(
            "SELECT reference FROM ledger_transfer WHERE payer = $1 AND nonce = $2",
            &[(&transfer.payer).into(), (&transfer.nonce).into()],
        )
        .await?;
    if let Some((reference,)) = known {
        return Ok(Some(reference));
    }
    let take = "UPDATE ledger_account SET balance = balance - $2 WHERE address = $1 AND balance >= $2";
    if tx.run(take, &[(&transfer.payer).into(), transfer.amount.into()]).await? == 0 {
        return Ok(None);
    }
    tx.run(
        "INSERT INTO ledger_account (address, balance) VALUES ($1, $2)
         ON CONFLICT (address) DO UPDATE SET balance = ledger_account.balance + excluded.balance",
        &[(&transfer.recipient).into(), transfer.amount.into()],
    )
    .await?;
    tx.run(
        "INSERT INTO ledger_transfer (payer, nonce, recipient, amount, reference, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
        &[
            (&transfer.payer).into(),
            (&transfer.nonce).into(),
            (&transfer.recipient).into(),
            transfer.amount.into(),
            (&transfer.reference).into(),
            transfer.now.into(),
        ],
    )
    .await?;
    Ok(Some(transfer.reference.clone()))
}
