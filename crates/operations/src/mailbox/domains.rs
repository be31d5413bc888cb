//! Custom email domains: claimed by a workspace, verified in DNS, with DKIM keys of their own.

pub mod keys;
mod progress;
mod records;

use mail::address::Address;
use model::{
    DomainId, Plan, Timestamp, WorkspaceId,
    audit::{AuditDetails, changes, created, deleted},
    domains::{DeletedDomainStatus, DomainDeleted, DomainStatus, EmailDomain, NewEmailDomain, RecordStatus},
    events::EventType,
};
use serde_json::json;
use store::{
    Tx, audit,
    domains::{self, DomainRecord, KeyRecord, RecordStatuses},
    mailboxes,
    vault::DataKey,
    workspaces,
};
use tokio::task::JoinSet;

use self::{progress::CheckTrigger, records::DnsCheck};
use crate::core::{
    app::App,
    audit::Author,
    call::Call,
    error::{Error, ErrorKind, Result},
    events::NewEvent,
    operation::Operation,
    secrets,
};

/// Lists the domains.
pub const LIST: Operation =
    Operation::read("listEmailDomains", "Lists the custom domains of a workspace with their DNS records.")
        .workspace()
        .plan(Plan::Developer);
/// Adds a domain.
pub const CREATE: Operation = Operation::provision(
    "createEmailDomain",
    "Adds a custom domain, creates its DKIM keys, and returns the DNS records to publish.",
)
.workspace()
.plan(Plan::Developer)
.admin()
.errors(&[ErrorKind::QuotaExceeded, ErrorKind::DomainExists]);
/// Verifies a domain's DNS records.
pub const VERIFY: Operation = Operation::write(
    "verifyEmailDomain",
    "Checks the DNS records of a custom domain now. The domain is verified when all required records are found.",
).workspace()
.plan(Plan::Developer)
.admin()
.errors(&[ErrorKind::NotFound]);
/// Deletes a domain.
pub const DELETE: Operation = Operation::write(
    "deleteEmailDomain",
    "Deletes a custom domain and its keys, here and at the sending provider.",
)
.workspace()
.plan(Plan::Developer)
.admin()
.errors(&[ErrorKind::NotFound, ErrorKind::DomainInUse]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &CREATE, &VERIFY, &DELETE];

/// Domains that one scheduled round checks, and how many at once.
const MAX_DOMAINS_PER_ROUND: i64 = 200;
const MAX_CONCURRENT_CHECKS: usize = 8;
/// How long a check keeps other nodes from checking the same domain.
const CHECK_LEASE_SECONDS: i64 = 300;

/// Lists the domains.
#[crate::boxed]
pub async fn list(app: &App, call: &Call) -> Result<Vec<EmailDomain>> {
    let (found, keys) =
        app.read(call, async |tx| Ok((domains::list(tx).await?, domains::list_keys(tx).await?))).await?;
    let keys_of = |id: &DomainId| {
        let own = keys.iter().filter(|key| key.domain_id == *id);
        own.map(|key| key.key.clone()).collect::<Vec<_>>()
    };
    Ok(found
        .into_iter()
        .map(|record| {
            let keys = keys_of(&record.id);
            show(app, record, &keys)
        })
        .collect())
}

/// What the audit log shows of a domain.
const AUDIT_FIELDS: &[&str] = &["domain", "status"];
/// What it calls a check by the service itself that changed a domain's status.
pub(crate) const CHECK_DOMAIN: &str = "checkEmailDomain";

fn state(record: &DomainRecord) -> serde_json::Value {
    json!({ "domain": record.domain, "status": record.status })
}

/// Adds a domain.
#[crate::boxed]
pub async fn create(app: &App, call: &Call, input: NewEmailDomain) -> Result<EmailDomain> {
    let domain = clean_domain(app, &input.domain)?;
    let limit = app.limits(call.plan).domains;
    let wanted = domain.clone();
    // Keys are expensive to generate: refuse before that.
    app.read(call, async move |tx| require_room(tx, &wanted, limit).await).await?;
    let id: DomainId = app.new_id();
    let data_key = app.data_key(&call.workspace).await?;
    let made = keys::make(app).await?;
    let keys = keys::sealed(made, 0, call.now, |purpose, plain| data_key.seal(purpose, plain))?;
    let record = DomainRecord {
        id,
        workspace_id: call.workspace.clone(),
        domain,
        status: DomainStatus::Pending,
        token: secrets::new_token(app),
        found: RecordStatuses::new(),
        last_error: None,
        verified_at: None,
        failing_since: None,
        next_check_at: progress::first_check(call.now),
        created_at: call.now,
        updated_at: call.now,
        ended_at: None,
    };
    let app_ = app.clone();
    app.write(call, async move |tx| {
        workspaces::lock(tx).await?;
        require_room(tx, &record.domain, limit).await?;
        if !domains::claim(tx, &record.domain).await? {
            return Err(Error::new(ErrorKind::DomainExists));
        }
        domains::insert(tx, &record, &keys).await?;
        let domain = show(&app_, record, &keys);
        tx.audit().about("domain", &domain.id).changed(created(&domain, AUDIT_FIELDS));
        Ok(domain)
    })
    .await
}

async fn require_room(tx: &mut Tx, domain: &str, limit: model::Limit) -> Result<()> {
    if domains::find_by_name(tx, domain).await?.is_some() {
        return Err(Error::new(ErrorKind::DomainExists));
    }
    let count = u64::try_from(domains::count(tx).await?).unwrap_or_default();
    if limit.has_room(count) { Ok(()) } else { Err(Error::quota("domains", limit)) }
}

/// The normalised domain, unless it is hosted by this server.
fn clean_domain(app: &App, text: &str) -> Result<String> {
    let invalid = |message: &str| Error::invalid("domain", message);
    let text = text.trim();
    if text.contains('@') {
        return Err(invalid("expected a domain such as example.com, not an address"));
    }
    let address = Address::parse(&format!("postmaster@{text}"))
        .map_err(|_| invalid("expected a domain such as example.com"))?;
    let domain = address.domain();
    if !domain.contains('.') {
        return Err(invalid("expected a domain with a dot, such as example.com"));
    }
    let own = |hosted: &String| {
        domain.strip_suffix(hosted.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if app.settings().hosted_domains.iter().any(own) {
        return Err(invalid("this domain belongs to the server: make mailboxes on it without adding it"));
    }
    Ok(domain.to_owned())
}

/// Checks a domain's DNS records now.
#[crate::boxed]
pub async fn verify(app: &App, call: &Call, id: DomainId) -> Result<EmailDomain> {
    let wanted = id.clone();
    let (record, keys) = app.read(call, async move |tx| get(tx, &wanted).await).await?;
    let check = records::look_up_all(app, &records::of(app.settings(), &record, &keys)).await;
    let data_key = app.data_key(&call.workspace).await?;
    let (app_, now) = (app.clone(), call.now);
    app.write(call, async move |tx| {
        let recorded = record_check(tx, &app_, &data_key, &id, check, CheckTrigger::Caller, now).await?;
        let (record, keys) = recorded.ok_or_else(records::missing)?;
        Ok(show(&app_, record, &keys))
    })
    .await
}

async fn get(tx: &mut Tx, id: &DomainId) -> Result<(DomainRecord, Vec<KeyRecord>)> {
    let record = domains::find(tx, id).await?.ok_or_else(records::missing)?;
    let keys = domains::keys(tx, id).await?;
    Ok((record, keys))
}

/// Deletes a domain.
#[crate::boxed]
pub async fn delete(app: &App, call: &Call, id: DomainId) -> Result<DomainDeleted> {
    app.write(call, async move |tx| {
        // Mailboxes are created under the same lock, so none can be added meanwhile.
        workspaces::lock(tx).await?;
        let record = domains::find_for_change(tx, &id).await?.ok_or_else(records::missing)?;
        if mailboxes::count_on_domain(tx, &id).await? > 0 {
            return Err(Error::new(ErrorKind::DomainInUse));
        }
        domains::delete(tx, &id).await?;
        tx.audit().about("domain", &id).changed(deleted(&state(&record), AUDIT_FIELDS));
        domains::delete_claim(tx, &record.domain).await?;
        Ok(DomainDeleted { status: DeletedDomainStatus::Deleted })
    })
    .await
}

/// Stores the result of a DNS check, and publishes an event when the domain becomes verified.
async fn record_check(
    tx: &mut Tx,
    app: &App,
    data_key: &DataKey,
    id: &DomainId,
    check: DnsCheck,
    trigger: CheckTrigger,
    now: Timestamp,
) -> Result<Option<(DomainRecord, Vec<KeyRecord>)>> {
    let Some(mut record) = domains::find_for_change(tx, id).await? else { return Ok(None) };
    let before = record.status;
    // Only a new verification must lock out other workspaces; any other result does not affect them.
    let proves = check.proves() && before != DomainStatus::Verified;
    if domains::is_claim_valid(tx, &record.domain, proves).await? {
        progress::apply_check(&mut record, check, trigger, now);
    } else {
        domains::expire_claim(tx, &record.domain, now).await?;
        progress::apply_loss(&mut record, now);
    }
    let mut keys = domains::keys(tx, id).await?;
    for key in &mut keys {
        let found = record.found.get(&records::dkim_key(&record.domain, &key.selector));
        key.published = found == Some(&RecordStatus::Verified);
        domains::set_published(tx, id, &key.selector, key.published).await?;
    }
    domains::update(tx, &record).await?;
    record_change(tx, app, &record, before, trigger).await?;
    let (was, is) = (before == DomainStatus::Verified, record.status == DomainStatus::Verified);
    if was && !is {
        domains::unprove(tx, &record.domain).await?;
    }
    if is && !was {
        domains::prove(tx, &record.domain, now).await?;
        let data = json!({ "domain_id": record.id, "domain": record.domain });
        let event = NewEvent { kind: EventType::DomainVerified, mailbox: None, data };
        event.append(tx, app, data_key, now).await?;
    }
    Ok(Some((record, keys)))
}

/// Tells the audit log of a check: a caller's always, and the service's own if it changed something.
async fn record_change(
    tx: &mut Tx,
    app: &App,
    record: &DomainRecord,
    before: DomainStatus,
    trigger: CheckTrigger,
) -> Result<()> {
    let changes = changes(&json!({ "status": before }), &state(record), &["status"]);
    match trigger {
        CheckTrigger::Schedule if changes.is_empty() => {}
        CheckTrigger::Schedule => {
            let entry = app.audit_entry(&Author::service("domain check"), CHECK_DOMAIN);
            let mut details = AuditDetails::default();
            audit::insert(tx, &[(&entry, details.about("domain", &record.id).changed(changes))]).await?;
        }
        CheckTrigger::Caller => {
            tx.audit().about("domain", &record.id).changed(changes);
        }
    }
    Ok(())
}

/// Checks the domains that are due, and returns how many. Any node may do it.
#[crate::boxed]
pub async fn check_due(app: &App) -> Result<usize> {
    let now = app.now();
    let due =
        app.db().system_read(async move |tx| domains::due(tx, now, MAX_DOMAINS_PER_ROUND).await).await?;
    let mut checked = 0;
    for some in due.chunks(MAX_CONCURRENT_CHECKS) {
        let mut running = JoinSet::new();
        for (workspace, id) in some {
            let (app, workspace, id) = (app.clone(), workspace.clone(), id.clone());
            running.spawn(async move { check_one(&app, &workspace, &id).await });
        }
        while let Some(done) = running.join_next().await {
            match done.map_err(Error::internal).flatten() {
                Ok(done) => checked += usize::from(done),
                // A failure must not block the other domains.
                Err(error) => tracing::warn!(%error, "domain check failed; retrying"),
            }
        }
    }
    Ok(checked)
}

async fn check_one(app: &App, workspace: &WorkspaceId, id: &DomainId) -> Result<bool> {
    let (now, wanted) = (app.now(), id.clone());
    let claimed = app
        .db()
        .write(workspace, async move |tx| {
            if !domains::claim_check(tx, &wanted, now, now.plus_seconds(CHECK_LEASE_SECONDS)).await? {
                return Ok(None);
            }
            get(tx, &wanted).await.map(Some)
        })
        .await?;
    let Some((record, keys)) = claimed else { return Ok(false) };
    let check = records::look_up_all(app, &records::of(app.settings(), &record, &keys)).await;
    let (app_, data_key, id) = (app.clone(), app.data_key(workspace).await?, id.clone());
    app.db()
        .write(workspace, async move |tx| {
            Ok(record_check(tx, &app_, &data_key, &id, check, CheckTrigger::Schedule, now).await?.is_some())
        })
        .await
}

/// The provider name of custom domains: this server itself.
const PROVIDER: &str = "agent_mailbox";

fn show(app: &App, mut record: DomainRecord, keys: &[KeyRecord]) -> EmailDomain {
    if let Some(ended) = record.ended_at {
        progress::apply_loss(&mut record, ended);
    }
    EmailDomain {
        dns_records: records::of(app.settings(), &record, keys),
        provider_domain_id: Some(record.id.to_string()),
        id: record.id,
        workspace_id: record.workspace_id,
        domain: record.domain,
        provider: PROVIDER.to_owned(),
        status: record.status,
        region: None,
        last_error: record.last_error,
        verified_at: record.verified_at,
        created_at: record.created_at,
        updated_at: record.updated_at,
    }
}
