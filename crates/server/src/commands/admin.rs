//! `admin …`: operators' commands for accounts, keys, workspaces, payouts and domains, with or without a running
//! server.

use std::{
    io::{self, BufRead, IsTerminal},
    process::ExitCode,
};

use model::{
    ApiKeyId, MailboxId, Plan, Timestamp, WorkspaceId,
    api_keys::{ApiKey, ApiKeyWithSecret, NewApiKey},
};
use operations::{
    App, Author,
    admin::{self, NewPayout, WorkspaceSummary},
    domains::keys::{self, PublicKey},
};
use serde_json::json;
use zeroize::Zeroizing;

use super::system_user::system_user;
use crate::{
    cli::{Account, Admin, Dkim, Key, Payments, Payout, Workspace},
    config::Config,
    failure::{Failure, Result},
    open, output,
};

/// Workspaces per page of a listing.
const PAGE_SIZE: i64 = 500;

pub(super) async fn run(config: Config, command: Admin) -> Result<ExitCode> {
    match command {
        Admin::Account(Account::Create { email, workspace_name, plan, quiet, .. }) => {
            // Read before anything is opened: people type slowly.
            let asked = email.clone();
            let password = open::blocking(move || read_password(&asked)).await?;
            let app = open::attach_or_create(&config).await?;
            let author = operator("admin account create");
            let created =
                admin::create_account(&app, email, password.to_string(), workspace_name, plan, &author)
                    .await?;
            if quiet {
                output::line(created.workspace_id);
                return Ok(ExitCode::SUCCESS);
            }
            output::result(&created, || {
                format!(
                    "Account    {}\nWorkspace  {}\nOwner      {}",
                    created.account_id, created.workspace_id, created.owner_address
                )
            })?;
        }
        Admin::Key(command) => key(&config, command).await?,
        Admin::Workspace(command) => {
            workspace(&open::attach(&config).await?, command).await.map_err(which_workspace)?;
        }
        Admin::Payout(command) => {
            payout(&open::attach(&config).await?, command).await.map_err(which_workspace)?;
        }
        Admin::Audit { workspace, limit } => {
            let app = open::attach(&config).await?;
            let workspace = find_workspace(&app, workspace).await?;
            super::audit::run(&app, &workspace, limit).await.map_err(which_workspace)?;
        }
        Admin::Dkim(command) => dkim(&open::attach(&config).await?, command).await?,
        Admin::Payments(command) => payments(&open::attach(&config).await?, command).await?,
        Admin::Nodes => super::nodes::run(&open::attach(&config).await?).await?,
        Admin::Trace { id } => super::trace::run(&config, &id).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The person who runs a command, for the audit log.
pub(super) fn operator(command: &str) -> Author {
    Author::operator(Some(system_user()), command)
}

fn which_workspace(failure: Failure) -> Failure {
    failure.or_fix("`agent-mailbox admin workspace list` shows all workspaces.")
}

async fn key(config: &Config, command: Key) -> Result<()> {
    let app = open::attach(config).await?;
    match command {
        Key::Create { workspace, name, role, scopes, mailboxes, expires_in, quiet } => {
            let workspace = find_workspace(&app, workspace).await?;
            let expires_at = expires_in.map(|seconds| app.now().plus_seconds(seconds));
            let mailboxes: Vec<MailboxId> = mailboxes.into_iter().map(MailboxId::from).collect();
            let input = NewApiKey {
                scopes: Some(scopes).filter(|scopes| !scopes.is_empty()),
                mailbox_ids: Some(mailboxes).filter(|mailboxes| !mailboxes.is_empty()),
                expires_at,
                ..NewApiKey::new(&name, role)
            };
            let created = admin::create_key(&app, workspace, input, &operator("admin key create")).await;
            let created = created.map_err(|error| which_workspace(error.into()))?;
            if quiet {
                output::line(created.key);
                return Ok(());
            }
            show_key(&app, &created, expires_at)
        }
        Key::List { workspace } => {
            let workspace = find_workspace(&app, workspace).await?;
            list_keys(&app, workspace).await.map_err(which_workspace)
        }
        Key::Revoke { id } => {
            admin::revoke_key(&app, ApiKeyId::from(id.as_str()), &operator("admin key revoke"))
                .await
                .map_err(|error| {
                    Failure::from(error)
                        .or_fix("`agent-mailbox admin key list --workspace …` shows the keys.")
                })?;
            output::result(&json!({ "id": id, "status": "revoked" }), || {
                format!("Revoked {id}. Running servers refuse it within a second.")
            })
        }
    }
}

fn show_key(app: &App, created: &ApiKeyWithSecret, expires_at: Option<Timestamp>) -> Result<()> {
    output::result(&json!({ "id": created.api_key.id, "key": created.key }), || {
        let expires = expires_at.map(|end| format!("Expires  {end}\n")).unwrap_or_default();
        let url = &app.settings().public_url;
        format!(
            "Id       {}\nKey      {}   (copy it now: it is not shown again)\n{expires}\n\
             Try it:  curl -H 'x-api-key: {}' {url}/api/v1/mailboxes",
            created.api_key.id, created.key, created.key
        )
    })
}

/// What a key is narrowed to.
fn narrowing(key: &ApiKey) -> String {
    let scopes = key.scopes.as_ref().map_or_else(
        || "all scopes".to_owned(),
        |scopes| scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(","),
    );
    let mailboxes = key.mailbox_ids.as_ref();
    let mailboxes = mailboxes.map(|ids| output::plural(ids.len() as u64, "mailbox"));
    format!("{scopes}, {}", mailboxes.unwrap_or_else(|| "all mailboxes".to_owned()))
}

async fn list_keys(app: &App, workspace: WorkspaceId) -> Result<()> {
    let keys = admin::list_keys(app, workspace).await?;
    let or = |time: Option<Timestamp>, none: &str| time.map_or_else(|| none.to_owned(), |at| at.to_string());
    output::result(&keys, || {
        let lines = keys.iter().map(|key| {
            format!(
                "{}  {}  {:<6}  {:<24}  expires {:<24}  last used {:<24}  {}\n",
                key.id,
                key.hint,
                key.role.as_str(),
                narrowing(key),
                or(key.expires_at, "never"),
                or(key.last_used_at, "never"),
                key.name
            )
        });
        lines.collect::<String>() + &output::plural(keys.len() as u64, "key")
    })
}

async fn workspace(app: &App, command: Workspace) -> Result<()> {
    match command {
        Workspace::List => {
            let workspaces = all_workspaces(app).await?;
            output::result(&workspaces, || {
                let lines = workspaces.iter().map(workspace_line);
                lines.collect::<String>() + &output::plural(workspaces.len() as u64, "workspace")
            })
        }
        Workspace::SetPlan { workspace, plan } => {
            let workspace = find_workspace(app, workspace).await?;
            set_plan(app, workspace, plan).await
        }
    }
}

fn workspace_line(workspace: &WorkspaceSummary) -> String {
    format!(
        "{}  {:<10}  {:>4} mailboxes  {:>4} keys  {}\n",
        workspace.id,
        workspace.plan.as_str(),
        workspace.mailbox_count,
        workspace.api_key_count,
        workspace.name
    )
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

async fn set_plan(app: &App, workspace: WorkspaceId, plan: Plan) -> Result<()> {
    admin::set_plan(app, workspace.clone(), plan, &operator("admin workspace set-plan")).await?;
    output::result(&json!({ "workspace_id": workspace, "plan": plan }), || {
        format!("Workspace {workspace} is now on the {} plan.", plan.display_name())
    })
}

async fn payout(app: &App, command: Payout) -> Result<()> {
    let Payout::Add { workspace, amount_cents, currency, status, period_start, period_end, reference } =
        command;
    let workspace = find_workspace(app, workspace).await?;
    let input = NewPayout { workspace, amount_cents, currency, status, period_start, period_end, reference };
    let payout = admin::add_payout(app, input, &operator("admin payout add")).await?;
    output::result(&payout, || {
        let (cents, currency) = (payout.amount_cents, &payout.currency);
        let amount = format!("{}.{:02} {currency}", cents / 100, cents % 100);
        format!("Recorded the payout {} of {amount} as {}.", payout.id, payout.status.as_str())
    })
}

async fn dkim(app: &App, command: Dkim) -> Result<()> {
    let found = match command {
        Dkim::List { domain } => {
            let own = || app.settings().hosted_domains.clone();
            let mut found = Vec::new();
            for domain in domain.map_or_else(own, |domain| vec![domain]) {
                found.extend(keys::list(app, &plain_domain(&domain)?).await?);
            }
            found
        }
        Dkim::Rotate { domain } => {
            keys::rotate(app, &plain_domain(&domain)?, &operator("admin dkim rotate")).await?
        }
    };
    output::result(&found, || {
        if found.is_empty() {
            return "No DKIM keys yet. `agent-mailbox admin dkim rotate --domain DOMAIN` creates them."
                .to_owned();
        }
        let lines = found.iter().map(|PublicKey { name, value, published }| {
            let state = if *published { "in DNS" } else { "not in DNS yet: publish it" };
            format!("{name}  TXT   ({state})\n  {value}")
        });
        lines.collect::<Vec<_>>().join("\n")
    })
}

async fn payments(app: &App, command: Payments) -> Result<()> {
    match command {
        Payments::List { state, payer, limit } => {
            let found = operations::payments::list(app, state, payer.as_deref(), i64::from(limit)).await?;
            output::result(&found, || {
                let lines = found.iter().map(|payment| {
                    format!(
                        "{}  {}  {:<9}  {:>9}  {}  {}  {}",
                        payment.created_at,
                        payment.id,
                        payment.state.as_str(),
                        payment.amount,
                        payment.payer,
                        payment.operation,
                        payment.reason.as_deref().unwrap_or_default(),
                    )
                });
                lines_or(lines, "No payments.")
            })
        }
        Payments::Totals => {
            let totals = operations::payments::totals(app).await?;
            output::result(&totals, || {
                let lines = totals
                    .iter()
                    .map(|total| format!("{:<9}  {:>8}  {:>14}", total.state, total.count, total.amount));
                lines_or(lines, "No payments.")
            })
        }
    }
}

/// Lines of a list, or what to say when there are none.
fn lines_or(lines: impl Iterator<Item = String>, none: &str) -> String {
    let text = lines.collect::<Vec<_>>().join("\n");
    if text.is_empty() { none.to_owned() } else { text }
}

/// A domain in its stored form.
fn plain_domain(domain: &str) -> Result<String> {
    let address = mail::address::Address::parse(&format!("postmaster@{domain}"));
    let address = address.map_err(|_| {
        Failure::new(format!("{domain:?} is not a domain"))
            .with_fix("Give a domain such as agents.example.com.")
    })?;
    Ok(address.domain().to_owned())
}

/// A workspace by its id, or by the address of an account: the account's oldest one.
async fn find_workspace(app: &App, named: String) -> Result<WorkspaceId> {
    if !named.contains('@') {
        return Ok(WorkspaceId::from(named));
    }
    let address = mail::address::Address::parse(&named).map(|address| address.as_str().to_owned());
    let email =
        address.map_err(|error| Failure::new(format!("{named:?} is not an email address: {error}")))?;
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
    first.ok_or_else(|| which_workspace(operations::Error::not_found("Workspace not found").into()))
}

/// The first line of standard input. At a terminal there is a prompt, and no echo.
fn read_password(email: &str) -> Result<Zeroizing<String>> {
    let stdin = io::stdin();
    let silence = if stdin.is_terminal() {
        output::error(format!("Password for {email} (at least 10 characters, not shown):"));
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
        return Err(Failure::new("There is no password on standard input")
            .with_fix("Pipe it into the command, or run the command on a terminal, which asks for it."));
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
