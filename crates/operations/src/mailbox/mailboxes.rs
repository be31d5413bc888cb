//! Mailboxes on hosted and custom domains: create, read, update, delete, storage.

use mail::address::{Address, hosted_local_part};
use model::{
    MailboxId,
    audit::{changes, deleted},
    domains::DomainStatus,
    events::EventType,
    folders::{Folder, SystemFolder, slug},
    mailboxes::{ListedMailbox, Mailbox, MailboxChange, MailboxSettings, NewMailbox, ReceivingStatus},
    triagers::Triager,
    usage::MailboxStorage,
};
use serde_json::json;
use store::{
    Tx, addresses, domains, folders,
    mailboxes::{self, MailboxDomain, MailboxName, MailboxRecord, MailboxWithStorage},
    triagers, workspaces,
};

use crate::core::{
    app::App,
    call::Call,
    caller::{Actor, Caller},
    error::{Error, ErrorKind, Result},
    events::NewEvent,
    input::clean_name,
    operation::{Operation, Reach},
};

/// Lists the mailboxes of a workspace.
pub const LIST_IN_WORKSPACE: Operation =
    Operation::read("listWorkspaceMailboxes", "Lists the mailboxes of a workspace.").visible();
/// Lists the mailboxes of the caller's workspace.
pub const LIST: Operation =
    Operation::read("listMailboxes", "Lists the mailboxes of the caller's workspace.")
        .visible()
        .errors(&[ErrorKind::WorkspaceScopeDenied]);
/// Makes a mailbox.
pub const CREATE: Operation = Operation::provision(
    "createMailbox",
    "Creates a mailbox. If you are not sure whether a call succeeded, list the mailboxes before you try again without an Idempotency-Key.",
).workspace()
.errors(&[ErrorKind::WorkspaceScopeDenied, ErrorKind::QuotaExceeded, ErrorKind::MailboxExists]);
/// Reads a mailbox.
pub const GET: Operation =
    Operation::read("getMailbox", "Returns a mailbox.").errors(&[ErrorKind::NotFound]).tagged();
/// Changes a mailbox.
pub const UPDATE: Operation = Operation::write("updateMailbox", "Changes a mailbox's name or settings.")
    .admin()
    .errors(&[ErrorKind::NotFound]);
/// Deletes a mailbox.
pub const DELETE: Operation = Operation::write(
    "deleteMailbox",
    "Deletes a mailbox. Its mail is deleted permanently after a grace period; its address stays reserved for the workspace.",
)
.admin()
.empty()
.errors(&[ErrorKind::NotFound]);
/// Reads what a mailbox stores.
pub const STORAGE: Operation = Operation::read("getMailboxStorage", "Returns how much a mailbox stores.")
    .errors(&[ErrorKind::NotFound])
    .tagged();

pub(crate) const OPERATIONS: &[&Operation] =
    &[&LIST_IN_WORKSPACE, &LIST, &CREATE, &GET, &UPDATE, &DELETE, &STORAGE];

/// What the audit log shows of a mailbox.
const AUDIT_FIELDS: &[&str] = &["name", "email", "settings"];

fn audited(record: &MailboxRecord) -> serde_json::Value {
    json!({ "name": record.name, "email": record.email, "settings": record.settings })
}

/// Lists the mailboxes of the call's workspace.
#[crate::boxed]
pub async fn list(app: &App, call: &Call) -> Result<Vec<ListedMailbox>> {
    let visible = call.mailbox_ids().cloned();
    let (records, unread) = app
        .read(call, async move |tx| {
            Ok((list_visible(tx, visible.as_deref()).await?, mailboxes::unread_by_category(tx).await?))
        })
        .await?;
    Ok(records
        .into_iter()
        .map(|record| {
            let counts = unread.iter().find(|(id, _)| *id == record.id).map(|(_, counts)| counts.clone());
            ListedMailbox { mailbox: show(app, record), inbox_unread_by_category: counts.unwrap_or_default() }
        })
        .collect())
}

/// The mailboxes with these ids, or all of the workspace.
pub(crate) async fn list_visible(tx: &mut Tx, ids: Option<&[MailboxId]>) -> Result<Vec<MailboxRecord>> {
    match ids {
        Some(ids) => Ok(mailboxes::list_some(tx, ids).await?),
        None => Ok(mailboxes::list(tx).await?),
    }
}

/// Makes a mailbox.
#[crate::boxed]
pub async fn create(app: &App, call: &Call, input: NewMailbox) -> Result<Mailbox> {
    call.require_workspace(input.workspace_id.as_ref())?;
    let (email, mut record) = new_record(app, call, input)?;
    let limit = match &call.caller.actor {
        Actor::Wallet(_) => app.settings().payments.mailboxes,
        _ => app.limits(call.plan).mailboxes,
    };
    let (app_, now) = (app.clone(), call.now);
    let key = app.data_key(&call.workspace).await?;
    app.write(call, async move |tx| {
        workspaces::lock(tx).await?;
        record.domain = custom_domain(tx, &app_, &email).await?;
        insert(tx, &record, limit).await?;
        let before = json!({ "settings": MailboxSettings::default() });
        tx.audit().in_mailbox(&record.id).changed(changes(&before, &audited(&record), AUDIT_FIELDS));
        event(EventType::MailboxCreated, &record).append(tx, &app_, &key, now).await?;
        Ok(show(&app_, record))
    })
    .await
}

/// The record of a new mailbox, if its input is valid.
fn new_record(app: &App, call: &Call, input: NewMailbox) -> Result<(Address, MailboxRecord)> {
    let email = match &input.email {
        Some(email) => crate::core::input::clean_email("email", email)?,
        None => generated_address(app, &input.name)?,
    };
    if is_hosted(app, &email) {
        hosted_local_part(email.local()).map_err(|error| Error::invalid("email", error.to_string()))?;
    }
    let record = MailboxRecord {
        id: app.new_id(),
        public_id: app.new_uuid().to_string(),
        workspace_id: call.workspace.clone(),
        email: email.as_str().to_owned(),
        name: clean_name("name", &input.name)?,
        settings: input.settings,
        triages_sent: false,
        domain: None,
        disabled_at: None,
        disabled_reason: None,
        created_at: call.now,
        updated_at: call.now,
    };
    Ok((email, record))
}

/// Tries to create the first mailbox of a caller without a workspace: fails with `Rehearsed` if it would succeed.
pub(crate) async fn rehearse_first(app: &App, call: &Call, input: NewMailbox) -> Result<Mailbox> {
    let (email, _) = new_record(app, call, input)?;
    if !is_hosted(app, &email) {
        return Err(not_served(app, &email));
    }
    let address = email.as_str().to_owned();
    let is_used = app.db().system_read(async move |tx| addresses::is_taken(tx, &address).await).await?;
    Err(Error::new(if is_used { ErrorKind::MailboxExists } else { ErrorKind::Rehearsed }))
}

fn not_served(app: &App, email: &Address) -> Error {
    let hosted = app.settings().hosted_domains.join(", ");
    Error::invalid("email", format!("this server serves {hosted}, not {}", email.domain()))
}

/// The workspace's custom domain of an address; nothing on a hosted one.
async fn custom_domain(tx: &mut Tx, app: &App, email: &Address) -> Result<Option<MailboxDomain>> {
    if is_hosted(app, email) {
        return Ok(None);
    }
    let own = domains::find_by_name(tx, email.domain()).await?;
    let domain = own.filter(|domain| domain.ended_at.is_none()).ok_or_else(|| not_served(app, email))?;
    if email.tag().is_some() {
        return Err(Error::invalid(
            "email",
            "must not have a tag: mail to name+tag@ is delivered to name@ anyway",
        ));
    }
    Ok(Some(MailboxDomain { id: domain.id, status: Some(domain.status) }))
}

fn is_hosted(app: &App, email: &Address) -> bool {
    app.settings().hosted_domains.iter().any(|domain| domain == email.domain())
}

/// Adds a mailbox; the workspace must be locked.
async fn insert(tx: &mut Tx, record: &MailboxRecord, limit: model::Limit) -> Result<()> {
    if !limit.has_room(u64::try_from(mailboxes::count(tx).await?).unwrap_or_default()) {
        return Err(Error::quota("mailboxes", limit));
    }
    // On a custom domain the address belongs to the domain's workspace; no global claim is needed.
    let name = MailboxName::Email(record.email.clone());
    let free = mailboxes::find_id(tx, &name).await?.is_none()
        && (record.domain.is_some() || addresses::claim(tx, &record.email, &record.id).await?);
    if !free {
        return Err(Error::new(ErrorKind::MailboxExists));
    }
    insert_with_folders(tx, record).await
}

/// The event of a created or deleted mailbox.
pub(crate) fn event(kind: EventType, record: &MailboxRecord) -> NewEvent {
    let data = json!({
        "mailbox_id": record.id,
        "public_id": record.public_id,
        "email": record.email,
        "name": record.name,
    });
    NewEvent { kind, mailbox: Some(record.id.clone()), data }
}

/// Adds a mailbox whose address is free, with the folders and the triager that every mailbox has.
pub(crate) async fn insert_with_folders(tx: &mut Tx, record: &MailboxRecord) -> Result<()> {
    mailboxes::insert(tx, record).await?;
    for (position, folder) in (0..).zip(SystemFolder::FIRST) {
        folders::insert(tx, &record.id, &Folder::system(folder), position).await?;
    }
    Ok(triagers::insert(tx, &Triager::first_of(&record.id, record.created_at)).await?)
}

/// Reads a mailbox.
#[crate::boxed]
pub async fn get(app: &App, call: &Call, named: &str) -> Result<Mailbox> {
    let named = name(call, named);
    let record = app.short_read(call, async move |tx| find(tx, &named).await).await?;
    Ok(show(app, record))
}

/// Changes a mailbox.
#[crate::boxed]
pub async fn update(app: &App, call: &Call, named: &str, change: MailboxChange) -> Result<Mailbox> {
    let new_name = change.name.map(|name| clean_name("name", &name)).transpose()?;
    let (app_, named, now) = (app.clone(), name(call, named), call.now);
    app.write(call, async move |tx| {
        let mut record = find(tx, &named).await?;
        let before = audited(&record);
        record.name = new_name.unwrap_or(record.name);
        record.settings = change.settings.unwrap_or(record.settings);
        record.updated_at = now;
        mailboxes::update(tx, &record).await?;
        tx.audit().changed(changes(&before, &audited(&record), AUDIT_FIELDS));
        Ok(show(&app_, record))
    })
    .await
}

/// Deletes a mailbox.
#[crate::boxed]
pub async fn delete(app: &App, call: &Call, named: &str) -> Result<()> {
    let (app_, named, now) = (app.clone(), name(call, named), call.now);
    let key = app.data_key(&call.workspace).await?;
    app.write(call, async move |tx| {
        let record = find(tx, &named).await?;
        mailboxes::mark_deleted(tx, &record.id, now).await?;
        tx.audit().changed(deleted(&audited(&record), &["name", "email"]));
        addresses::release(tx, &record.email).await?;
        event(EventType::MailboxDeleted, &record).append(tx, &app_, &key, now).await
    })
    .await
}

/// Reads what a mailbox stores.
#[crate::boxed]
pub async fn storage(app: &App, call: &Call, named: &str) -> Result<MailboxStorage> {
    let named = name(call, named);
    app.read(call, async move |tx| {
        let record = find(tx, &named).await?;
        let (bytes, blob_count) = mailboxes::storage(tx, &record.id).await?;
        #[expect(
            clippy::cast_precision_loss,
            reason = "a figure for people; bytes stay exact far beyond petabytes"
        )]
        let storage_gb = bytes as f64 / 1e9;
        Ok(MailboxStorage { mailbox_id: record.id, email: record.email, storage_gb, blob_count })
    })
    .await
}

pub(crate) async fn find(tx: &mut Tx, named: &MailboxName) -> Result<MailboxRecord> {
    mailboxes::find(tx, named).await?.ok_or_else(missing)
}

/// The same for one that is about to send a message, with what its workspace stores.
pub(crate) async fn find_with_storage(tx: &mut Tx, named: &MailboxName) -> Result<MailboxWithStorage> {
    mailboxes::find_with_storage(tx, named).await?.ok_or_else(missing)
}

/// The id of a mailbox that a caller named, for the operations inside it.
pub(crate) async fn find_id(tx: &mut Tx, named: &MailboxName) -> Result<model::MailboxId> {
    mailboxes::find_id(tx, named).await?.ok_or_else(missing)
}

pub(crate) fn missing() -> Error {
    Error::not_found("Mailbox not found")
}

/// The mailbox that a caller named. This is the gate for keys that are narrowed to mailboxes: every operation inside a
/// mailbox finds it by the result, and any other mailbox is none here.
pub(crate) fn name(call: &Call, text: &str) -> MailboxName {
    call.caller.narrowing.resolve(parse_name(text))
}

/// What a request is about for a narrowed caller, beside what it says: its scopes, whether the mailbox in its path exists
/// for it, and without one, which mailboxes do. So no stored answer is replayed to a caller that would not get it now.
/// Empty for all others.
pub fn visible_part(caller: &Caller, operation: &Operation, mailbox: Option<&str>) -> String {
    let mut part = caller.narrowing.scope_names();
    part.push_str(&visible_mailboxes(caller, operation, mailbox));
    part
}

fn visible_mailboxes(caller: &Caller, operation: &Operation, mailbox: Option<&str>) -> String {
    let Some(ids) = caller.narrowing.mailbox_ids() else { return String::new() };
    match mailbox {
        Some(text) if operation.reach == Reach::Mailbox => {
            let sees = caller.narrowing.sees(parse_name(text));
            if sees { String::new() } else { "outside".to_owned() }
        }
        _ => ids.iter().map(model::Id::as_str).collect::<Vec<_>>().join(" "),
    }
}

/// The ids of the mailboxes that a caller named in a field of the input.
pub(crate) async fn known(
    tx: &mut Tx,
    field: &str,
    named: &[MailboxId],
    name: impl Fn(&str) -> MailboxName + Send,
) -> Result<Vec<MailboxId>> {
    let mut known: Vec<MailboxId> = Vec::with_capacity(named.len());
    for (position, text) in named.iter().enumerate() {
        let Some(id) = mailboxes::find_id(tx, &name(text.as_str())).await? else {
            return Err(Error::invalid(format!("{field}[{position}]"), "there is no such mailbox"));
        };
        if !known.contains(&id) {
            known.push(id);
        }
    }
    Ok(known)
}

/// How a caller names a mailbox: by its UUID, its alias id, or its address in any spelling.
pub(crate) fn parse_name(text: &str) -> MailboxName {
    if text.contains('@') {
        let address = Address::parse(text).map(|address| address.as_str().to_owned());
        // An invalid address finds nothing, like an unknown one.
        return MailboxName::Email(address.unwrap_or_default());
    }
    if text.starts_with("mbx_") {
        return MailboxName::Id(text.into());
    }
    MailboxName::PublicId(text.to_ascii_lowercase())
}

fn generated_address(app: &App, name: &str) -> Result<Address> {
    let domain = app.settings().hosted_domains.first().map_or("localhost", String::as_str);
    Address::parse(&format!("{}@{domain}", generate_local_part(app, name))).map_err(Error::internal)
}

/// A free local part for a mailbox of that name: the name if it can be spelt in an address, and random characters. So
/// a name such as "Support" can be used although its own address is reserved.
pub fn generate_local_part(app: &App, name: &str) -> String {
    const MAX_NAME_CHARACTERS: usize = 19;
    const ADDRESS_CHARACTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut random = [0_u8; 10];
    app.entropy().fill(&mut random);
    let tail: String =
        random.iter().map(|byte| char::from(ADDRESS_CHARACTERS[usize::from(byte % 32)])).collect();
    let slug: String = slug(name).chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    let parts: Vec<&str> = slug.split('-').filter(|part| !part.is_empty()).collect();
    let mut spelt = parts.join("-");
    spelt.truncate(MAX_NAME_CHARACTERS);
    let stem = spelt.trim_end_matches('-');
    format!("{}-{tail}", if stem.is_empty() { "agent" } else { stem })
}

/// Whether mail for a mailbox's domain is routed here: always on a hosted domain, on a custom one once it is verified.
pub(crate) fn is_reachable(domain: Option<&MailboxDomain>) -> bool {
    domain.is_none_or(|domain| domain.status == Some(DomainStatus::Verified))
}

fn show(app: &App, record: MailboxRecord) -> Mailbox {
    let settings: MailboxSettings = record.settings;
    let receiving_status = match record.disabled_at {
        Some(_) => ReceivingStatus::Disabled,
        None if app.settings().receives_mail && is_reachable(record.domain.as_ref()) => {
            ReceivingStatus::Ready
        }
        None => ReceivingStatus::Unavailable,
    };
    Mailbox {
        id: record.id,
        public_id: record.public_id,
        workspace_id: record.workspace_id,
        email: record.email,
        name: record.name,
        email_domain_id: record.domain.map(|domain| domain.id),
        inbound_provider: app.settings().receives_mail.then(|| "edge_routing".to_owned()),
        outbound_provider: Some(app.settings().outbound.mode.as_str().to_owned()),
        settings,
        can_receive: receiving_status == ReceivingStatus::Ready,
        receiving_status,
        disabled_at: record.disabled_at,
        disabled_reason: record.disabled_reason,
        created_at: record.created_at,
        updated_at: record.updated_at,
    }
}
