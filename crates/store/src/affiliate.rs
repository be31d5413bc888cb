//! Affiliates, their clicks, commissions and payouts.

use model::{
    AffiliateId, CommissionId, Day, Plan, Timestamp, WorkspaceId,
    affiliate::{AffiliateDay, Commission, CommissionStatus, Payout},
};

use crate::{
    FromRow, Row, SystemTx, Tx,
    error::Result,
    sql::{Columns, Insert, columns},
};

/// An affiliate as it is stored.
#[derive(Clone, Debug)]
pub struct AffiliateRecord {
    /// Its id.
    pub id: AffiliateId,
    /// The code in its link.
    pub code: String,
    /// Where payouts are announced.
    pub payout_email: Option<String>,
    /// When it signed up.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

columns!(AffiliateRecord { id, code, payout_email, created_at, updated_at });

/// The workspace's affiliate account.
pub async fn find(tx: &mut Tx) -> Result<Option<AffiliateRecord>> {
    tx.one(&format!("SELECT {} FROM affiliate WHERE workspace_id = $1", AffiliateRecord::COLUMNS), &[]).await
}

/// The workspace whose affiliate link has a code.
pub async fn find_by_code(tx: &mut SystemTx, code: &str) -> Result<Option<WorkspaceId>> {
    let found = tx.one("SELECT workspace_id FROM affiliate WHERE code = $1", &[code.into()]).await?;
    Ok(found.map(|(id,)| id))
}

/// Adds the workspace's affiliate account. False when it has one or the code is taken.
pub async fn insert(tx: &mut Tx, affiliate: &AffiliateRecord) -> Result<bool> {
    let added = tx
        .run(
            "INSERT INTO affiliate (workspace_id, id, code, payout_email, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT DO NOTHING",
            &[
                (&affiliate.id).into(),
                (&affiliate.code).into(),
                affiliate.payout_email.as_ref().into(),
                affiliate.created_at.into(),
            ],
        )
        .await?;
    Ok(added == 1)
}

/// Stores the changeable fields of the workspace's affiliate account.
pub async fn update(tx: &mut Tx, affiliate: &AffiliateRecord) -> Result<()> {
    tx.run(
        "UPDATE affiliate SET code = $2, payout_email = $3, updated_at = $4 WHERE workspace_id = $1",
        &[(&affiliate.code).into(), affiliate.payout_email.as_ref().into(), affiliate.updated_at.into()],
    )
    .await?;
    Ok(())
}

/// Counts clicks on the link and sign-ups through it.
pub async fn count(tx: &mut Tx, day: Day, clicks: i64, sign_ups: i64) -> Result<()> {
    tx.run(
        "INSERT INTO affiliate_day (workspace_id, day, clicks, sign_ups) VALUES ($1, $2, $3, $4)
         ON CONFLICT (workspace_id, day) DO UPDATE SET
         clicks = affiliate_day.clicks + excluded.clicks, sign_ups = affiliate_day.sign_ups + excluded.sign_ups",
        &[day.number().into(), clicks.into(), sign_ups.into()],
    )
    .await?;
    Ok(())
}

/// Clicks, sign-ups and conversions of all time.
pub async fn totals(tx: &mut Tx) -> Result<(i64, i64, i64)> {
    let found = tx
        .one(
            "SELECT CAST(coalesce(sum(clicks), 0) AS BIGINT), CAST(coalesce(sum(sign_ups), 0) AS BIGINT),
                    (SELECT count(DISTINCT referred_workspace) FROM commission WHERE workspace_id = $1)
             FROM affiliate_day WHERE workspace_id = $1",
            &[],
        )
        .await?;
    Ok(found.unwrap_or_default())
}

/// Earned and paid cents of all time.
pub async fn money(tx: &mut Tx) -> Result<(i64, i64)> {
    let found = tx
        .one(
            "SELECT CAST(coalesce((SELECT sum(amount_cents) FROM commission WHERE workspace_id = $1), 0) AS BIGINT),
                    CAST(coalesce((SELECT sum(amount_cents) FROM payout
                                   WHERE workspace_id = $1 AND status = 'paid'), 0) AS BIGINT)",
            &[],
        )
        .await?;
    Ok(found.unwrap_or_default())
}

/// The days since `first` with clicks or sign-ups.
pub async fn days(tx: &mut Tx, first: Day) -> Result<Vec<AffiliateDay>> {
    let rows: Vec<(i64, i64, i64)> = tx
        .all(
            "SELECT day, clicks, sign_ups FROM affiliate_day WHERE workspace_id = $1 AND day >= $2 ORDER BY day",
            &[first.number().into()],
        )
        .await?;
    Ok(rows
        .into_iter()
        .map(|(day, clicks, sign_ups)| AffiliateDay { date: Day::from_number(day), clicks, sign_ups })
        .collect())
}

columns!(Commission { id, plan, amount_cents, currency, status, created_at });

/// The newest commissions.
pub async fn list_commissions(tx: &mut Tx, limit: i64) -> Result<Vec<Commission>> {
    tx.all(
        &format!(
            "SELECT {} FROM commission
         WHERE workspace_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2",
            Commission::COLUMNS
        ),
        &[limit.into()],
    )
    .await
}

/// A commission to be recorded for the transaction's workspace.
pub struct NewCommission {
    /// Its id.
    pub id: CommissionId,
    /// The workspace that pays.
    pub referred_workspace: WorkspaceId,
    /// The plan it pays for.
    pub plan: Plan,
    /// The amount.
    pub amount_cents: i64,
    /// Its currency.
    pub currency: String,
    /// The month it pays for: one commission per referred workspace and month.
    pub period_start: Timestamp,
    /// When it was earned.
    pub created_at: Timestamp,
}

/// Records a commission, unless the month already has one.
pub async fn insert_commission(tx: &mut Tx, commission: &NewCommission) -> Result<()> {
    tx.run(
        "INSERT INTO commission
         (workspace_id, id, referred_workspace, plan, amount_cents, currency, status, period_start, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (workspace_id, referred_workspace, period_start) DO NOTHING",
        &[
            (&commission.id).into(),
            (&commission.referred_workspace).into(),
            commission.plan.into(),
            commission.amount_cents.into(),
            (&commission.currency).into(),
            CommissionStatus::Pending.into(),
            commission.period_start.into(),
            commission.created_at.into(),
        ],
    )
    .await?;
    Ok(())
}

/// A referred workspace whose referrer has no commission for the month yet, and that referrer.
pub type DueCommission = (WorkspaceId, WorkspaceId);

/// The commissions still owed for a month and a plan, bounded: (workspace, referrer).
pub async fn list_due(tx: &mut SystemTx, month: Timestamp, plan: Plan) -> Result<Vec<DueCommission>> {
    tx.all(
        "SELECT w.id, w.referred_by FROM workspace w JOIN affiliate a ON a.workspace_id = w.referred_by
         WHERE w.plan = $2 AND NOT EXISTS (SELECT 1 FROM commission c WHERE c.workspace_id = w.referred_by
             AND c.referred_workspace = w.id AND c.period_start = $1)
         LIMIT $3",
        &[month.into(), plan.into(), SystemTx::SWEEP.into()],
    )
    .await
}

/// Marks the commissions earned in a period as paid.
pub async fn mark_commissions_paid(tx: &mut Tx, from: Timestamp, until: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE commission SET status = 'paid' WHERE workspace_id = $1 AND created_at >= $2 AND created_at < $3",
        &[from.into(), until.into()],
    )
    .await?;
    Ok(())
}

columns!(Payout {
    id,
    amount_cents,
    currency,
    status,
    period_start,
    period_end,
    reference,
    paid_at,
    created_at,
});

/// The newest payouts.
pub async fn list_payouts(tx: &mut Tx, limit: i64) -> Result<Vec<Payout>> {
    tx.all(
        &format!(
            "SELECT {}
         FROM payout WHERE workspace_id = $1 ORDER BY period_start DESC, id DESC LIMIT $2",
            Payout::COLUMNS
        ),
        &[limit.into()],
    )
    .await
}

/// A payout with the workspace that receives it.
#[derive(Clone, Debug)]
pub struct WorkspacePayout {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// Its name.
    pub workspace_name: String,
    /// The payout.
    pub payout: Payout,
}

impl FromRow for WorkspacePayout {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self { workspace_id: row.next()?, workspace_name: row.next()?, payout: Payout::from_row(row)? })
    }
}

/// The latest payouts of all workspaces.
pub async fn list_all_payouts(tx: &mut SystemTx, most: i64) -> Result<Vec<WorkspacePayout>> {
    tx.all(
        "SELECT p.workspace_id, w.name, p.id, p.amount_cents, p.currency, p.status, p.period_start, p.period_end,
           p.reference, p.paid_at, p.created_at
         FROM payout p JOIN workspace w ON w.id = p.workspace_id ORDER BY p.created_at DESC, p.id DESC LIMIT $1",
        &[most.into()],
    )
    .await
}

/// Records a payout.
pub async fn insert_payout(tx: &mut Tx, payout: &Payout) -> Result<()> {
    Insert::into("payout").record(payout).run(tx).await?;
    Ok(())
}
