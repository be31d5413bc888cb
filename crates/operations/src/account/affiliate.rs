//! Affiliates: a link to share, its clicks and sign-ups, and its earnings.

use model::{
    Plan,
    affiliate::{Affiliate, AffiliateAnalytics, AffiliateChange, AffiliateSignUp, Commission, Payout},
    audit::{changes, created},
};
use store::affiliate::{self, AffiliateRecord, NewCommission};

use crate::core::{
    app::App,
    call::Call,
    error::{Error, ErrorKind, Result},
    input::clean_email,
    operation::Operation,
};

/// Reads the workspace's affiliate account.
pub const ME: Operation = Operation::read("getAffiliate", "Returns the workspace's affiliate account.")
    .workspace()
    .errors(&[ErrorKind::NotFound])
    .tagged();
/// Signs the workspace up as an affiliate.
pub const SIGN_UP: Operation = Operation::write("signUpAffiliate", "Signs the workspace up as an affiliate.")
    .workspace()
    .admin()
    .created()
    .errors(&[ErrorKind::AffiliateExists]);
/// Changes the affiliate account.
pub const UPDATE: Operation =
    Operation::write("updateAffiliate", "Changes the workspace's affiliate account.")
        .workspace()
        .admin()
        .errors(&[ErrorKind::NotFound, ErrorKind::AffiliateExists]);
/// Reads the figures of the link.
pub const ANALYTICS: Operation = Operation::read(
    "getAffiliateAnalytics",
    "Returns the clicks, sign-ups and earnings of the affiliate link.",
)
.workspace();
/// Lists the commissions.
pub const COMMISSIONS: Operation =
    Operation::read("listAffiliateCommissions", "Lists the newest 500 commissions.").workspace();
/// Lists the payouts.
pub const PAYOUTS: Operation =
    Operation::read("listAffiliatePayouts", "Lists the newest 500 payouts.").workspace();

pub(crate) const OPERATIONS: &[&Operation] = &[&ME, &SIGN_UP, &UPDATE, &ANALYTICS, &COMMISSIONS, &PAYOUTS];

/// What the audit log shows of an affiliate.
const AUDIT_FIELDS: &[&str] = &["code", "payout_email"];

/// How many entries of a history are shown.
const MAX_HISTORY: i64 = 500;

/// Reads the workspace's affiliate account.
#[crate::boxed]
pub async fn me(app: &App, call: &Call) -> Result<Affiliate> {
    let record = app.read(call, async |tx| affiliate::find(tx).await?.ok_or_else(missing)).await?;
    Ok(show(app, record))
}

/// Signs the workspace up as an affiliate.
#[crate::boxed]
pub async fn sign_up(app: &App, call: &Call, input: AffiliateSignUp) -> Result<Affiliate> {
    let record = AffiliateRecord {
        id: app.new_id(),
        code: input.code.unwrap_or_else(|| generated_code(app)),
        payout_email: clean_payout_email(input.payout_email)?,
        created_at: call.now,
        updated_at: call.now,
    };
    let app_ = app.clone();
    app.write(call, async move |tx| {
        if !affiliate::insert(tx, &record).await? {
            return Err(Error::new(ErrorKind::AffiliateExists));
        }
        let affiliate = show(&app_, record);
        tx.audit().about("affiliate", &affiliate.id).changed(created(&affiliate, AUDIT_FIELDS));
        Ok(affiliate)
    })
    .await
}

/// Changes the workspace's affiliate account.
#[crate::boxed]
pub async fn update(app: &App, call: &Call, change: AffiliateChange) -> Result<Affiliate> {
    let payout_email = clean_payout_email(change.payout_email)?;
    let (app_, now) = (app.clone(), call.now);
    app.write(call, async move |tx| {
        let mut record = affiliate::find(tx).await?.ok_or_else(missing)?;
        let before = show(&app_, record.clone());
        record.code = change.code.unwrap_or(record.code);
        record.payout_email = payout_email.or(record.payout_email);
        record.updated_at = now;
        match affiliate::update(tx, &record).await {
            Err(store::Error::Conflict(_)) => Err(Error::new(ErrorKind::AffiliateExists)),
            Err(error) => Err(error.into()),
            Ok(()) => {
                let after = show(&app_, record);
                tx.audit().about("affiliate", &after.id).changed(changes(&before, &after, AUDIT_FIELDS));
                Ok(after)
            }
        }
    })
    .await
}

/// Reads the figures of the link.
#[crate::boxed]
pub async fn analytics(app: &App, call: &Call) -> Result<AffiliateAnalytics> {
    let first = model::Day::from_number(call.now.day().number() - 29);
    let currency = app.settings().currency.clone();
    app.read(call, async move |tx| {
        let (clicks, sign_ups, conversions) = affiliate::totals(tx).await?;
        let (earned_cents, paid_cents) = affiliate::money(tx).await?;
        Ok(AffiliateAnalytics {
            clicks,
            sign_ups,
            conversions,
            earned_cents,
            paid_cents,
            pending_cents: (earned_cents - paid_cents).max(0),
            currency,
            days: affiliate::days(tx, first).await?,
        })
    })
    .await
}

/// Lists the newest commissions.
#[crate::boxed]
pub async fn commissions(app: &App, call: &Call) -> Result<Vec<Commission>> {
    app.read(call, async |tx| Ok(affiliate::list_commissions(tx, MAX_HISTORY).await?)).await
}

/// Lists the newest payouts.
#[crate::boxed]
pub async fn payouts(app: &App, call: &Call) -> Result<Vec<Payout>> {
    app.read(call, async |tx| Ok(affiliate::list_payouts(tx, MAX_HISTORY).await?)).await
}

/// Counts a click on a link. False when no affiliate has the code.
#[crate::boxed]
pub async fn track(app: &App, code: &str) -> Result<bool> {
    let (code, today) = (code.to_owned(), app.now().day());
    app.db()
        .system_write(async move |tx| {
            let Some(workspace) = affiliate::find_by_code(tx, &code).await? else { return Ok(false) };
            affiliate::count(tx.enter(&workspace), today, 1, 0).await?;
            Ok(true)
        })
        .await
}

/// Records this month's commissions of referred workspaces on paid plans. Idempotent: one per workspace and month.
pub(crate) async fn accrue(app: &App) -> Result<()> {
    for plan in Plan::ALL {
        let amount = commission_cents(app, plan);
        // Plans without a commission are skipped: their workspaces would block the others.
        while amount > 0 && accrue_some(app, plan, amount).await? {}
    }
    Ok(())
}

/// Records some of the commissions that are due for a plan, and returns whether there were any.
async fn accrue_some(app: &App, plan: Plan, amount_cents: i64) -> Result<bool> {
    let now = app.now();
    let month = now.month_start();
    let due = app.db().system_read(async move |tx| affiliate::list_due(tx, month, plan).await).await?;
    let found = !due.is_empty();
    for (referred_workspace, referrer) in due {
        let commission = NewCommission {
            id: app.new_id(),
            referred_workspace,
            plan,
            amount_cents,
            currency: app.settings().currency.clone(),
            period_start: month,
            created_at: now,
        };
        app.db()
            .write(&referrer, async move |tx| {
                Ok::<_, Error>(affiliate::insert_commission(tx, &commission).await?)
            })
            .await?;
    }
    Ok(found)
}

fn commission_cents(app: &App, plan: Plan) -> i64 {
    let price = i64::try_from(app.limits(plan).price_cents).unwrap_or_default();
    price.saturating_mul(app.settings().affiliate_percent) / 100
}

fn clean_payout_email(email: Option<String>) -> Result<Option<String>> {
    email
        .map(|email| clean_email("payout_email", &email).map(|address| address.as_str().to_owned()))
        .transpose()
}

fn generated_code(app: &App) -> String {
    crate::core::secrets::new_token(app).chars().take(10).collect::<String>().to_ascii_lowercase()
}

fn show(app: &App, record: AffiliateRecord) -> Affiliate {
    Affiliate {
        link: format!("{}/api/affiliate/track?code={}", app.settings().public_url, record.code),
        id: record.id,
        code: record.code,
        payout_email: record.payout_email,
        commission_percent: app.settings().affiliate_percent,
        created_at: record.created_at,
        updated_at: record.updated_at,
    }
}

fn missing() -> Error {
    Error::not_found("Affiliate not found").with_fix("Sign up with POST /api/v1/affiliate/signup first.")
}
