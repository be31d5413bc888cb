//! Settings of the workspace, of the account, and the affiliate account.

use askama::Template;
use axum::{
    Router,
    extract::{Path, Request},
    response::Response,
    routing::{get, post},
};
use model::{accounts::PasswordChange, affiliate::AffiliateSignUp, workspaces::WorkspaceChange};
use operations::{ErrorKind, Result, accounts, affiliate, password_resets, workspaces};
use serde_json::json;

use super::{
    amounts::money,
    auth::after_log_out,
    confirm::{Question, confirmed},
    fields::{Fields, input},
    form_state::{FormState, Labels},
    page::{self, html},
    session_api::client,
    shell::Shell,
    time::{When, number},
    visit::Visit,
};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/settings", get(workspace).post(save_workspace))
        .route("/console/account", get(account))
        .route("/console/account/password", post(change_password))
        .route("/console/account/sessions/{session}/end", post(end_session))
        .route("/console/account/logout-everywhere", post(log_out_everywhere))
        .route("/console/affiliate", get(affiliate_page).post(sign_up_affiliate))
}

const WORKSPACE_LABELS: Labels = &[("name", "name", "Name"), ("timezone", "timezone", "Time zone")];
const PASSWORD_LABELS: Labels =
    &[("current", "current", "Current password"), ("password", "password", "New password")];
const AFFILIATE_LABELS: Labels =
    &[("code", "code", "Code"), ("payout_email", "payout_email", "Payout email")];

/// A limit of the plan: what it limits, and how much.
type Allowance = (&'static str, String);

#[derive(Template)]
#[template(path = "console/settings.html")]
struct SettingsPage {
    shell: Shell,
    id: String,
    name: String,
    timezone: String,
    zones: Vec<String>,
    allowances: Vec<Allowance>,
    storage: String,
    storage_ready: bool,
    owner: String,
    made: When,
    may_change: bool,
    form: FormState,
}

async fn workspace(visit: Visit) -> Response {
    visit.answer(show_workspace(&visit, FormState::default())).await
}

async fn show_workspace(visit: &Visit, form: FormState) -> Result<Response> {
    let shell = visit.shell("Settings", "settings").await?;
    let call = visit.call(&workspaces::GET)?;
    let found = workspaces::get(visit.app(), &call).await?;
    let limits = visit.app().limits(call.plan);
    let display = |limit: model::Limit| {
        limit
            .get()
            .map_or_else(|| "unlimited".to_owned(), |limit| number(i64::try_from(limit).unwrap_or(i64::MAX)))
    };
    let allowances = vec![
        ("Credits per month", display(limits.credits_per_period)),
        ("Requests per minute", display(limits.rpm)),
        ("Mailboxes", display(limits.mailboxes)),
        ("Members", display(limits.members)),
        ("API keys", display(limits.api_keys)),
        ("Custom domains", display(limits.domains)),
        ("Emails sent per month", display(limits.mails_per_month)),
        ("Recipients per email", display(limits.recipients_per_request)),
    ];
    let storage = &found.storage;
    html(&SettingsPage {
        zones: jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect(),
        id: found.id.as_str().to_owned(),
        name: found.name.clone(),
        timezone: found.timezone.clone(),
        allowances,
        storage: storage.last_error.clone().unwrap_or_else(|| storage.provider.clone()),
        storage_ready: storage.last_error.is_none(),
        owner: found.owner_address.clone(),
        made: shell.zone.when(found.created_at),
        may_change: visit.may(&workspaces::UPDATE),
        form,
        shell,
    })
}

async fn save_workspace(visit: Visit, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let saved = async {
        let change: WorkspaceChange =
            input(&json!({ "name": fields.get("name"), "timezone": fields.get("timezone") }))?;
        workspaces::update(visit.app(), &visit.call(&workspaces::UPDATE)?, change).await
    };
    match saved.await {
        Ok(_) => {
            let done = ("/console/settings".to_owned(), "Settings saved.".to_owned());
            visit.act("/console/settings", async { Ok(done) }).await
        }
        Err(refused) => {
            let form = FormState::refused(fields, &refused, WORKSPACE_LABELS);
            visit.again(&refused, show_workspace(&visit, form)).await
        }
    }
}

struct SessionRow {
    id: String,
    device: String,
    began: When,
    ends: When,
    current: bool,
}

#[derive(Template)]
#[template(path = "console/account.html")]
struct AccountPage {
    shell: Shell,
    sessions: Vec<SessionRow>,
    form: FormState,
}

/// A short name of a browser, from its user agent.
fn device(agent: &str) -> String {
    let browser = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
        ("curl/", "curl"),
    ];
    let system = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS", "macOS"),
        ("Linux", "Linux"),
    ];
    let find = |known: &[(&str, &'static str)]| {
        known.iter().find(|(mark, _)| agent.contains(mark)).map(|(_, name)| *name)
    };
    match (find(&browser), find(&system)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        _ if agent.is_empty() => "Unknown program".to_owned(),
        _ => agent.chars().take(60).collect(),
    }
}

async fn account(visit: Visit) -> Response {
    visit.answer(show_account(&visit, FormState::default())).await
}

async fn show_account(visit: &Visit, form: FormState) -> Result<Response> {
    let shell = visit.shell("Account", "account").await?;
    let sessions = accounts::list_sessions(visit.app(), &visit.caller).await?;
    let sessions = sessions
        .into_iter()
        .map(|one| SessionRow {
            id: one.id.as_str().to_owned(),
            device: device(&one.user_agent),
            began: shell.zone.when(one.created_at),
            ends: shell.zone.when(one.expires_at),
            current: one.current,
        })
        .collect();
    html(&AccountPage { shell, sessions, form })
}

async fn change_password(visit: Visit, request: Request) -> Response {
    let client = client(&visit.state, &request);
    let changed = async {
        let fields = Fields::read(request).await?;
        let change: PasswordChange =
            input(&json!({ "current": fields.get("current"), "password": fields.get("password") }))?;
        password_resets::change(visit.app(), &visit.caller, change, &client).await
    };
    match changed.await {
        Ok(()) => after_log_out(&visit, Ok(()), "Password changed. Log in with the new one."),
        Err(refused) => {
            // Passwords are not sent back.
            let form = FormState::refused(Fields::default(), &refused, PASSWORD_LABELS);
            visit.again(&refused, show_account(&visit, form)).await
        }
    }
}

async fn end_session(visit: Visit, Path(session): Path<String>, request: Request) -> Response {
    let question = Question {
        title: "Log out this session?",
        text: "The browser or program has to log in again.",
        button: "Log out session",
        cancel: "/console/account",
        typed: "",
    };
    confirmed(&visit, request, &question, |_| {
        visit.act("/console/account", async {
            accounts::revoke_session(visit.app(), &visit.caller, session.into(), &visit.request).await?;
            Ok(("/console/account".to_owned(), "Session logged out.".to_owned()))
        })
    })
    .await
}

async fn log_out_everywhere(visit: Visit, request: Request) -> Response {
    let question = Question {
        title: "Log out everywhere?",
        text: "All your sessions end, including this one.",
        button: "Log out everywhere",
        cancel: "/console/account",
        typed: "",
    };
    confirmed(&visit, request, &question, async |_| {
        let ended = accounts::log_out_everywhere(visit.app(), &visit.caller, &visit.request).await;
        after_log_out(&visit, ended, "You are logged out everywhere.")
    })
    .await
}

struct Earnings {
    link: String,
    percent: i64,
    clicks: String,
    sign_ups: String,
    conversions: String,
    earned: String,
    paid: String,
    pending: String,
}

#[derive(Template)]
#[template(path = "console/affiliate.html")]
struct AffiliatePage {
    shell: Shell,
    earnings: Option<Earnings>,
    percent: i64,
    commissions: Vec<(When, &'static str, String, &'static str)>,
    payouts: Vec<(When, String, &'static str, String)>,
    may_join: bool,
    form: FormState,
}

async fn affiliate_page(visit: Visit) -> Response {
    visit.answer(show_affiliate(&visit, FormState::default())).await
}

async fn show_affiliate(visit: &Visit, form: FormState) -> Result<Response> {
    let shell = visit.shell("Affiliate program", "affiliate").await?;
    let app = visit.app();
    let own = match affiliate::me(app, &visit.call(&affiliate::ME)?).await {
        Ok(own) => Some(own),
        Err(refused) if refused.kind() == ErrorKind::NotFound => None,
        Err(refused) => return Err(refused),
    };
    let mut page = AffiliatePage {
        shell,
        earnings: None,
        percent: app.settings().affiliate_percent,
        commissions: Vec::new(),
        payouts: Vec::new(),
        may_join: visit.may(&affiliate::SIGN_UP),
        form,
    };
    if let Some(own) = own {
        let figures = affiliate::analytics(app, &visit.call(&affiliate::ANALYTICS)?).await?;
        let money_of = |cents| money(cents, &figures.currency);
        page.earnings = Some(Earnings {
            link: own.link,
            percent: own.commission_percent,
            clicks: number(figures.clicks),
            sign_ups: number(figures.sign_ups),
            conversions: number(figures.conversions),
            earned: money_of(figures.earned_cents),
            paid: money_of(figures.paid_cents),
            pending: money_of(figures.pending_cents),
        });
        let zone = page.shell.zone.clone();
        let earned = affiliate::commissions(app, &visit.call(&affiliate::COMMISSIONS)?).await?;
        let row = |one: model::affiliate::Commission| {
            (
                zone.when(one.created_at),
                one.plan.display_name(),
                money(one.amount_cents, &one.currency),
                one.status.as_str(),
            )
        };
        page.commissions = earned.into_iter().map(row).collect();
        let paid = affiliate::payouts(app, &visit.call(&affiliate::PAYOUTS)?).await?;
        let row = |one: model::affiliate::Payout| {
            (
                zone.when(one.created_at),
                money(one.amount_cents, &one.currency),
                one.status.as_str(),
                one.reference.unwrap_or_default(),
            )
        };
        page.payouts = paid.into_iter().map(row).collect();
    }
    html(&page)
}

async fn sign_up_affiliate(visit: Visit, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let joined = async {
        let (code, email) = (fields.given("code"), fields.given("payout_email"));
        let request: AffiliateSignUp = input(&json!({ "code": code, "payout_email": email }))?;
        affiliate::sign_up(visit.app(), &visit.call(&affiliate::SIGN_UP)?, request).await
    };
    match joined.await {
        Ok(_) => {
            let done = ("/console/affiliate".to_owned(), "Your link is ready.".to_owned());
            visit.act("/console/affiliate", async { Ok(done) }).await
        }
        Err(refused) => {
            let form = FormState::refused(fields, &refused, AFFILIATE_LABELS);
            visit.again(&refused, show_affiliate(&visit, form)).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_have_short_names() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36";
        assert_eq!(device(chrome), "Chrome on Linux");
        assert_eq!(device("curl/8.1"), "curl");
        assert_eq!(device(""), "Unknown program");
    }
}
