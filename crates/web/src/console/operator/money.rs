//! Payments by wallets, and payouts to affiliates.

use askama::Template;
use axum::{
    Router,
    extract::{RawQuery, Request},
    response::Response,
    routing::get,
};
use model::{Timestamp, WorkspaceId, affiliate::PayoutStatus, payments::PaymentState};
use operations::{
    Error, Result,
    admin::{self, NewPayout},
    payments,
};

use crate::{
    State,
    console::{
        amounts::money,
        fields::Fields,
        form_state::{FormState, Labels},
        page::{self, html},
        shell::Shell,
        time::{When, number},
        visit::Visit,
    },
};

/// The payment states to filter by.
const STATES: [PaymentState; 5] = [
    PaymentState::Settling,
    PaymentState::Pending,
    PaymentState::Settled,
    PaymentState::Fulfilled,
    PaymentState::Failed,
];
const PAYOUTS: &str = "/console/operator/payouts";
const LABELS: Labels = &[
    ("workspace", "workspace", "Workspace"),
    ("reference", "reference", "Reference"),
    ("amount", "amount", "Amount"),
    ("amount_cents", "amount", "Amount"),
    ("currency", "currency", "Currency"),
    ("period_start", "period_start", "From"),
    ("period_end", "period_end", "Until"),
    ("status", "status", "Status"),
];

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/operator/payments", get(list_payments))
        .route(PAYOUTS, get(list_payouts).post(add_payout))
}

struct PaymentRow {
    at: When,
    state: &'static str,
    amount: String,
    payer: String,
    operation: String,
    network: String,
    reason: String,
    transaction: String,
}

#[derive(Template)]
#[template(path = "console/operator_payments.html")]
struct PaymentsPage {
    shell: Shell,
    totals: Vec<(String, String, String)>,
    rows: Vec<PaymentRow>,
    states: Vec<&'static str>,
    state: String,
    payer: String,
}

async fn list_payments(visit: Visit, RawQuery(query): RawQuery) -> Response {
    visit
        .answer(async {
            visit.require_operator()?;
            let fields = Fields::parse(query.unwrap_or_default().as_bytes());
            let shell = visit.shell("Payments", "operator-payments").await?;
            let state: Option<PaymentState> = fields
                .given("state")
                .map(str::parse)
                .transpose()
                .map_err(|said: String| Error::invalid("state", said))?;
            let found =
                payments::list(visit.app(), state, fields.given("payer"), visit.limits().newest_shown)
                    .await?;
            let rows = found.into_iter().map(|one| PaymentRow {
                at: shell.zone.when(one.created_at),
                state: one.state.as_str(),
                amount: one.amount,
                payer: one.payer,
                operation: one.operation,
                network: one.network,
                reason: one.reason.unwrap_or_default(),
                transaction: one.transaction.unwrap_or_default(),
            });
            let rows = rows.collect();
            let totals = payments::totals(visit.app()).await?;
            let totals = totals.into_iter().map(|one| (one.state, number(one.count), one.amount));
            html(&PaymentsPage {
                totals: totals.collect(),
                rows,
                states: STATES.into_iter().map(PaymentState::as_str).collect(),
                state: fields.get("state").to_owned(),
                payer: fields.get("payer").to_owned(),
                shell,
            })
        })
        .await
}

struct PayoutRow {
    workspace: String,
    amount: String,
    status: &'static str,
    period: (When, When),
    reference: String,
    recorded: When,
}

#[derive(Template)]
#[template(path = "console/operator_payouts.html")]
struct PayoutsPage {
    shell: Shell,
    rows: Vec<PayoutRow>,
    currency: String,
    /// Workspaces to choose from: id and name.
    workspaces: Vec<(String, String)>,
    /// The form, which may have been refused.
    state: FormState,
}

async fn show_payouts(visit: &Visit, state: FormState) -> Result<Response> {
    visit.require_operator()?;
    let app = visit.app();
    let shell = visit.shell("Payouts", "operator-payouts").await?;
    let found = admin::list_payouts(app, visit.limits().newest_shown).await?;
    let rows = found.into_iter().map(|one| PayoutRow {
        workspace: one.workspace_name,
        amount: money(one.payout.amount_cents, &one.payout.currency),
        status: one.payout.status.as_str(),
        period: (shell.zone.when(one.payout.period_start), shell.zone.when(one.payout.period_end)),
        reference: one.payout.reference.unwrap_or_default(),
        recorded: shell.zone.when(one.payout.created_at),
    });
    let rows = rows.collect();
    let workspaces = admin::list_workspaces(app, WorkspaceId::from(""), visit.limits().newest_shown).await?;
    let workspaces = workspaces.into_iter().map(|one| (one.id.as_str().to_owned(), one.name)).collect();
    let currency = state.or("currency", &app.settings().currency).to_owned();
    html(&PayoutsPage { shell, rows, currency, workspaces, state })
}

async fn list_payouts(visit: Visit) -> Response {
    visit.answer(show_payouts(&visit, FormState::default())).await
}

async fn add_payout(visit: Visit, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    match record_payout(&visit, &fields).await {
        Ok(said) => visit.act(PAYOUTS, async { Ok((PAYOUTS.to_owned(), said)) }).await,
        Err(refused) => {
            let state = FormState::refused(fields, &refused, LABELS);
            visit.again(&refused, show_payouts(&visit, state)).await
        }
    }
}

async fn record_payout(visit: &Visit, fields: &Fields) -> Result<String> {
    visit.require_operator()?;
    let status: PayoutStatus =
        fields.get("status").parse().map_err(|said: String| Error::invalid("status", said))?;
    let payout = NewPayout {
        workspace: WorkspaceId::from(fields.get("workspace").trim()),
        amount_cents: cents(fields.get("amount"))?,
        currency: fields.get("currency").trim().to_owned(),
        status,
        period_start: day("period_start", fields.get("period_start"))?,
        period_end: day("period_end", fields.get("period_end"))?,
        reference: fields.given("reference").map(ToOwned::to_owned),
    };
    let recorded = admin::add_payout(visit.app(), payout, &visit.author()).await?;
    Ok(format!("Payout of {} recorded.", money(recorded.amount_cents, &recorded.currency)))
}

/// The start of a day in UTC, as payouts count.
fn day(field: &str, text: &str) -> Result<Timestamp> {
    let moment = format!("{}T00:00:00Z", text.trim());
    moment.parse().map_err(|_| Error::invalid(field, "choose a day"))
}

/// An amount with at most two decimals, in cents.
fn cents(text: &str) -> Result<i64> {
    let wrong = || Error::invalid("amount", "expected an amount such as 12.50");
    let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 2 {
        return Err(wrong());
    }
    let whole: i64 = whole.parse().map_err(|_| wrong())?;
    let hundredths: i64 = format!("{part:0<2}").parse().map_err(|_| wrong())?;
    whole.checked_mul(100).and_then(|cents| cents.checked_add(hundredths)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_to_the_cent() {
        for (text, amount) in [("12.50", 1250), ("12.5", 1250), ("12", 1200), (" 0.07 ", 7)] {
            assert_eq!(cents(text).unwrap(), amount, "{text}");
        }
        for wrong in ["", ".", "1.", ".5", "-1", "1.234", "1,50", "1e3", "99999999999999999999"] {
            assert!(cents(wrong).is_err(), "{wrong}");
        }
    }
}
