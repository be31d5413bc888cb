//! `admin …`: operators' commands for accounts, keys, workspaces, payouts and domains, with or without a running
//! server.

use std::{
    io::{self, BufRead, IsTerminal},
    process::ExitCode,
};

use model::{ApiKeyId, Plan, Timestamp, WorkspaceId, api_keys::ApiKeyWithSecret};
use operations::{
    App,
    admin::{self, NewPayout, WorkspaceSummary},
    domains::keys::{self, PublicKey},
};
use serde_json::json;
use zeroize::Zeroizing;

use crate::{
    cli::{Account, Admin, Dkim, Key, Payments, Payout, Workspace},
    config::Config,
    failure::{Failure, Result},
    open, output,
};

/// Workspaces per page of a listing.
const PAGE_SIZE: i64 = 500;

pub(super) async fn run(config: Config, command: Admin) -> Result<ExitCode> {
    let json = command.json();
    match command {
        Admin::Account(Account::Create { email, workspace_name, plan, quiet, .. }) => {
            // Read before anything is opened: people type slowly.
            let asked = email.clone();
            let password = open::blocking(move || read_password(&asked)).await?;
            let app = open::attach(&config).await?;
            let created =
                admin::create_account(&app, email, password.to_string(), workspace_name, plan).await?;
            if json {
                output::json(&created)?;
            } else if quiet {
                output::line(created.workspace_id);
            } else {
                output::line(format!("Account    {}", created.account_id));
                output::line(format!("Workspace  {}", created.workspace_id));
                output::line(format!("Owner      {}", created.owner_address));
            }
        }
        Admin::Key(command) => key(&config, command).await?,
        Admin::Workspace(command) => workspace(&open::attach(&config).await?, command).await?,
        Admin::Payout(command) => payout(&open::attach(&config).await?, command).await?,
        Admin::Dkim(command) => dkim(&open::attach(&config).await?, command).await?,
        Admin::Payments(command) => payments(&open::attach(&config).await?, command).await?,
        Admin::Trace { id, json } => super::trace::run(&config, &id, json).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn key(config: &Config, command: Key) -> Result<()> {
    let app = open::attach(config).await?;
    match command {
        Key::Create { workspace, name, role, expires_in, quiet, json } => {
            let workspace = find_workspace(&app, workspace).await?;
            let expires_at = expires_in.map(|seconds| app.now().plus_seconds(seconds));
            let created = admin::create_key(&app, workspace, &name, role, expires_at).await?;
            match (json, quiet) {
                (true, _) => output::json(&json!({ "id": created.api_key.id, "key": created.key })),
                (false, true) => {
                    output::line(created.key);
                    Ok(())
                }
                (false, false) => {
                    show_key(&app, &created, expires_at);
                    Ok(())
                }
            }
        }
        Key::List { workspace, json } => {
            let workspace = find_workspace(&app, workspace).await?;
            list_keys(&app, workspace, json).await
        }
        Key::Revoke { id, json } => {
            admin::revoke_key(&app, ApiKeyId::from(id.as_str())).await?;
            if json {
                output::json(&json!({ "id": id, "status": "revoked" }))
            } else {
                output::line(format!("Key {id} is revoked; running servers notice within a second."));
                Ok(())
            }
        }
    }
}

fn show_key(app: &App, created: &ApiKeyWithSecret, expires_at: Option<Timestamp>) {
    output::line(format!("Id       {}", created.api_key.id));
    output::line(format!("Key      {}   (shown this once)", created.key));
    if let Some(end) = expires_at {
        output::line(format!("Expires  {end}"));
    }
    let url = &app.settings().public_url;
    output::line(format!("\nTry it:  curl -H 'x-api-key: {}' {url}/api/v1/mailboxes", created.key));
}

async fn list_keys(app: &App, workspace: WorkspaceId, json: bool) -> Result<()> {
    let keys = admin::list_keys(app, workspace).await?;
    if json {
        return output::json(&keys);
    }
    let or = |time: Option<Timestamp>, none: &str| time.map_or_else(|| none.to_owned(), |at| at.to_string());
    for key in &keys {
        output::line(format!(
            "{}  {}  {:<6}  expires {:<24}  last used {:<24}  {}",
            key.id,
            key.hint,
            key.role.as_str(),
            or(key.expires_at, "never"),
            or(key.last_used_at, "never"),
            key.name
        ));
    }
    output::line(output::plural(keys.len() as u64, "key"));
    Ok(())
}

async fn workspace(app: &App, command: Workspace) -> Result<()> {
    match command {
        Workspace::List { json } => {
            let workspaces = all_workspaces(app).await?;
            if json {
                return output::json(&workspaces);
            }
            for workspace in &workspaces {
                output::line(format!(
                    "{}  {:<10}  {:>4} mailboxes  {:>4} keys  {}",
                    workspace.id,
                    workspace.plan.as_str(),
                    workspace.mailbox_count,
                    workspace.api_key_count,
                    workspace.name
                ));
            }
            output::line(output::plural(workspaces.len() as u64, "workspace"));
            Ok(())
        }
        Workspace::SetPlan { workspace, plan, json } => {
            let workspace = find_workspace(app, workspace).await?;
            set_plan(app, workspace, plan, json).await
        }
    }
}

async fn all_workspaces(app: &App) -> Result<Vec<WorkspaceSummary>> {
    let mut all: Vec<WorkspaceSummary> = Vec::new();
    loop {
        let after = all.last().map_or_else(|| WorkspaceId::from(""), |last| last.id.clone());
        let page = admin::list_workspaces(app, after, PAGE_SIZE).await?;
        let full = page.len() as u64 == PAGE_SIZE.unsigned_abs();
        all.extend(page);
        if !full {
            return Ok(all);
        }
    }
}

async fn set_plan(app: &App, workspace: WorkspaceId, plan: Plan, json: bool) -> Result<()> {
    admin::set_plan(app, workspace.clone(), plan).await?;
    if json {
        return output::json(&json!({ "workspace_id": workspace, "plan": plan }));
    }
    output::line(format!("Workspace {workspace} is on the plan {} now.", plan.display_name()));
    Ok(())
}

async fn payout(app: &App, command: Payout) -> Result<()> {
    let Payout::Add { workspace, amount_cents, currency, status, period_start, period_end, reference, json } =
        command;
    let workspace = find_workspace(app, workspace).await?;
    let input = NewPayout { workspace, amount_cents, currency, status, period_start, period_end, reference };
    let payout = admin::add_payout(app, input).await?;
    if json {
        return output::json(&payout);
    }
    let (cents, currency) = (payout.amount_cents, &payout.currency);
    let amount = format!("{}.{:02} {currency}", cents / 100, cents % 100);
    output::line(format!("Payout {} of {amount} is noted as {}.", payout.id, payout.status.as_str()));
    Ok(())
}

async fn dkim(app: &App, command: Dkim) -> Result<()> {
    let (found, json) = match command {
        Dkim::List { domain, json } => {
            let own = || app.settings().hosted_domains.clone();
            let mut found = Vec::new();
            for domain in domain.map_or_else(own, |domain| vec![domain]) {
                found.extend(keys::list(app, &plain_domain(&domain)?).await?);
            }
            (found, json)
        }
        Dkim::Rotate { domain, json } => (keys::rotate(app, &plain_domain(&domain)?).await?, json),
    };
    if json {
        return output::json(&found);
    }
    for PublicKey { name, value, published } in found {
        let state = if published { "seen in DNS" } else { "not seen in DNS yet" };
        output::line(format!("{name}  TXT   ({state})\n  {value}"));
    }
    Ok(())
}

async fn payments(app: &App, command: Payments) -> Result<()> {
    match command {
        Payments::List { state, payer, limit, json } => {
            let found = operations::payments::list(app, state, payer.as_deref(), i64::from(limit)).await?;
            if json {
                return output::json(&found);
            }
            if found.is_empty() {
                output::line("No payments.");
            }
            for payment in &found {
                output::line(format!(
                    "{}  {}  {:<9}  {:>9}  {}  {}  {}",
                    payment.created_at,
                    payment.id,
                    payment.state.as_str(),
                    payment.amount,
                    payment.payer,
                    payment.operation,
                    payment.reason.as_deref().unwrap_or_default(),
                ));
            }
        }
        Payments::Totals { json } => {
            let totals = operations::payments::totals(app).await?;
            if json {
                return output::json(&totals);
            }
            if totals.is_empty() {
                output::line("No payments.");
            }
            for total in &totals {
                output::line(format!("{:<9}  {:>8}  {:>14}", total.state, total.count, total.amount));
            }
        }
    }
    Ok(())
}

/// A domain in its stored form.
fn plain_domain(domain: &str) -> Result<String> {
    let address = mail::address::Address::parse(&format!("postmaster@{domain}"));
    let address = address.map_err(|_| Failure::new(format!("{domain:?} is not a domain")))?;
    Ok(address.domain().to_owned())
}

/// A workspace by its id, or by the address of an account: the account's oldest one.
async fn find_workspace(app: &App, named: String) -> Result<WorkspaceId> {
    if !named.contains('@') {
        return Ok(WorkspaceId::from(named));
    }
    let address = mail::address::Address::parse(&named).map(|address| address.as_str().to_owned());
    let email = address.map_err(|error| Failure::new(format!("{named:?} is not an address: {error}")))?;
    let found = app
        .db()
        .system_read(async move |tx| {
            let Some(found) = store::accounts::find_by_email(tx, &email).await? else {
                return Ok(Vec::new());
            };
            store::system::memberships(tx, &found.account.id).await
        })
        .await
        .map_err(|error: store::Error| Failure::from(error))?;
    let first = found.into_iter().next().map(|membership| membership.workspace_id);
    first.ok_or_else(|| operations::Error::not_found("Workspace not found").into())
}

/// The first line of standard input. At a terminal there is a prompt, and no echo.
fn read_password(email: &str) -> Result<Zeroizing<String>> {
    let stdin = io::stdin();
    let silence = if stdin.is_terminal() {
        output::error(format!("Password for {email} (10 characters at least, not shown):"));
        EchoOff::begin()
    } else {
        None
    };
    let mut line = Zeroizing::new(String::new());
    let read = stdin.lock().read_line(&mut line);
    drop(silence);
    read.map_err(|error| Failure::new(format!("The password cannot be read: {error}")))?;
    let password = Zeroizing::new(line.trim_end_matches(['\n', '\r']).to_owned());
    if password.is_empty() {
        return Err(Failure::new("There is no password on standard input"));
    }
    Ok(password)
}

/// A terminal without echo, until this is dropped.
struct EchoOff(rustix::termios::Termios);

impl EchoOff {
    fn begin() -> Option<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin()).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Now, &silent).ok()?;
        Some(Self(before))
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        let _ = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.0);
    }
}
