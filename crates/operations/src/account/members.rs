//! Members of a workspace and invites to it.

use model::{
    AccountId, InviteId, Role, Timestamp,
    audit::{AuditChange, changes, created, deleted},
    members::{Invite, InviteWithLink, Member, MemberChange, NewInvite},
};
use store::{Tx, integrations, members, vault::DataKey, webhooks, workspaces};

use crate::{
    core::{
        app::App,
        call::Call,
        error::{Error, ErrorKind, Result},
        input::clean_email,
        operation::Operation,
        secrets,
    },
    outbox::sending::automatic::enqueue_system,
};

/// Lists the members.
pub const LIST: Operation = Operation::read("listMembers", "Lists the members of a workspace.").workspace();
/// Changes a member's role.
pub const UPDATE: Operation = Operation::write("updateMember", "Changes the role of a member.")
    .workspace()
    .admin()
    .errors(&[ErrorKind::NotFound, ErrorKind::LastAdmin]);
/// Removes a member.
pub const REMOVE: Operation = Operation::write("removeMember", "Removes a member from a workspace.")
    .workspace()
    .admin()
    .empty()
    .errors(&[ErrorKind::NotFound, ErrorKind::LastAdmin]);
/// Lists the open invites.
pub const LIST_INVITES: Operation =
    Operation::read("listInvites", "Lists the open invites to a workspace.").workspace().admin();
/// Invites a person.
pub const INVITE: Operation = Operation::write(
    "createInvite",
    "Invites a person to a workspace with a single-use link that is valid for 7 days.",
)
.workspace()
.admin()
.created()
.errors(&[ErrorKind::QuotaExceeded]);
/// Renews an invite.
pub const RESEND_INVITE: Operation = Operation::write(
    "resendInvite",
    "Renews an invite with a new link for 7 more days; the old link stops working.",
)
.workspace()
.admin()
.errors(&[ErrorKind::NotFound, ErrorKind::QuotaExceeded]);
/// Withdraws an invite.
pub const DELETE_INVITE: Operation = Operation::write("deleteInvite", "Withdraws an invite.")
    .workspace()
    .admin()
    .empty()
    .errors(&[ErrorKind::NotFound]);

pub(crate) const OPERATIONS: &[&Operation] =
    &[&LIST, &UPDATE, &REMOVE, &LIST_INVITES, &INVITE, &RESEND_INVITE, &DELETE_INVITE];

/// What the audit log shows of members and invites.
const MEMBER_FIELDS: &[&str] = &["email", "role"];
const INVITE_FIELDS: &[&str] = &["email", "role", "expires_at"];

/// How long an invite's link works.
const INVITE_SECONDS: i64 = 7 * 24 * 3600;

/// Lists the members.
#[crate::boxed]
pub async fn list(app: &App, call: &Call) -> Result<Vec<Member>> {
    app.read(call, async |tx| Ok(members::list(tx).await?)).await
}

/// Changes a member's role.
#[crate::boxed]
pub async fn update(app: &App, call: &Call, id: AccountId, change: MemberChange) -> Result<Member> {
    app.write(call, async move |tx| {
        let member = get_for_change(tx, &id, change.role == Role::Admin).await?;
        members::set_role(tx, &id, change.role).await?;
        let changed = Member { role: change.role, ..member.clone() };
        tx.audit().about("member", &id).changed(changes(&member, &changed, MEMBER_FIELDS));
        Ok(changed)
    })
    .await
    .inspect(|_| app.credentials().forget())
}

/// Removes a member. Webhooks and connections that they made are paused until an admin takes them over.
#[crate::boxed]
pub async fn remove(app: &App, call: &Call, id: AccountId) -> Result<()> {
    let now = call.now;
    app.write(call, async move |tx| {
        let member = get_for_change(tx, &id, false).await?;
        tx.audit().about("member", &id).changed(deleted(&member, MEMBER_FIELDS));
        members::delete(tx, &id).await?;
        webhooks::pause_made_by(tx, &id, now).await?;
        Ok(integrations::pause_made_by(tx, &id, now).await?)
    })
    .await?;
    app.credentials().forget();
    Ok(())
}

/// Refuses to make something for a member who has left meanwhile. The workspace must be locked: removing the member
/// later pauses it.
pub(crate) async fn require_creator(tx: &mut Tx, creator: Option<&AccountId>) -> Result<()> {
    if let Some(creator) = creator
        && members::find(tx, creator).await?.is_none()
    {
        return Err(Error::new(ErrorKind::WorkspaceScopeDenied));
    }
    Ok(())
}

/// The owner of something that is resumed: its creator, or the caller when the creator has left. The workspace must
/// be locked.
pub(crate) async fn take_over(
    tx: &mut Tx,
    created_by: Option<AccountId>,
    caller: Option<AccountId>,
) -> Result<Option<AccountId>> {
    let Some(creator) = created_by else { return Ok(None) };
    if members::find(tx, &creator).await?.is_some() {
        return Ok(Some(creator));
    }
    require_creator(tx, caller.as_ref()).await?;
    Ok(caller)
}

/// The member, unless the change would leave the workspace without an admin.
async fn get_for_change(tx: &mut Tx, id: &AccountId, stays_admin: bool) -> Result<Member> {
    workspaces::lock(tx).await?;
    let member = members::find(tx, id).await?.ok_or_else(|| Error::not_found("Member not found"))?;
    if member.role == Role::Admin && !stays_admin && members::count_admins(tx).await? <= 1 {
        return Err(Error::new(ErrorKind::LastAdmin));
    }
    Ok(member)
}

/// Lists the open invites.
#[crate::boxed]
pub async fn list_invites(app: &App, call: &Call) -> Result<Vec<Invite>> {
    let now = call.now;
    app.read(call, async move |tx| Ok(members::list_invites(tx, now).await?)).await
}

/// Invites a person. Inviting the same address again replaces the older invite.
#[crate::boxed]
pub async fn invite(app: &App, call: &Call, input: NewInvite) -> Result<InviteWithLink> {
    let email = clean_email("email", &input.email)?.as_str().to_owned();
    let token = secrets::new_token(app);
    let invite = Invite {
        id: app.new_id(),
        email,
        role: input.role,
        created_at: call.now,
        expires_at: call.now.plus_seconds(INVITE_SECONDS),
    };
    let (limit, link, now) = (app.limits(call.plan).members, link(app, &token), call.now);
    let (app_, key) = (app.clone(), app.data_key(&call.workspace).await?);
    app.write(call, async move |tx| {
        workspaces::lock(tx).await?;
        if members::has_email(tx, &invite.email).await? {
            return Err(Error::invalid("email", "this address already belongs to a member"));
        }
        members::insert_invite(tx, &invite, &secrets::hash(&token)).await?;
        tx.audit().about("invite", &invite.id).changed(created(&invite, INVITE_FIELDS));
        require_seat(tx, limit, now).await?;
        send_invite(tx, &app_, &key, &invite, &link).await?;
        Ok(InviteWithLink { invite, link })
    })
    .await
}

/// Refuses the invite that was just stored when the plan has no seat for it.
async fn require_seat(tx: &mut Tx, limit: model::Limit, now: Timestamp) -> Result<()> {
    let seats = u64::try_from(members::count_seats(tx, now).await?).unwrap_or_default();
    if limit.has_room(seats.saturating_sub(1)) { Ok(()) } else { Err(Error::quota("members", limit)) }
}

/// Gives an invite a new link and more time.
#[crate::boxed]
pub async fn resend_invite(app: &App, call: &Call, id: InviteId) -> Result<InviteWithLink> {
    let token = secrets::new_token(app);
    let (link, expires_at) = (link(app, &token), call.now.plus_seconds(INVITE_SECONDS));
    let (limit, now) = (app.limits(call.plan).members, call.now);
    let (app_, key) = (app.clone(), app.data_key(&call.workspace).await?);
    app.write(call, async move |tx| {
        workspaces::lock(tx).await?;
        let invite =
            members::find_invite(tx, &id).await?.ok_or_else(|| Error::not_found("Invite not found"))?;
        members::renew_invite(tx, &id, &secrets::hash(&token), expires_at).await?;
        // An expired one gave up its seat.
        if invite.expires_at <= now {
            require_seat(tx, limit, now).await?;
        }
        let renewed = Invite { expires_at, ..invite.clone() };
        let mut changed = changes(&invite, &renewed, INVITE_FIELDS);
        changed.push(AuditChange::hidden("link"));
        tx.audit().about("invite", &id).changed(changed);
        let invite = renewed;
        send_invite(tx, &app_, &key, &invite, &link).await?;
        Ok(InviteWithLink { invite, link })
    })
    .await
}

/// Withdraws an invite.
#[crate::boxed]
pub async fn delete_invite(app: &App, call: &Call, id: InviteId) -> Result<()> {
    app.write(call, async move |tx| {
        let missing = || Error::not_found("Invite not found");
        let invite = members::find_invite(tx, &id).await?.ok_or_else(missing)?;
        tx.audit().about("invite", &id).changed(deleted(&invite, INVITE_FIELDS));
        if members::delete_invite(tx, &id).await? { Ok(()) } else { Err(missing()) }
    })
    .await
}

/// Sends the link to the invited address, where there is a route to it.
async fn send_invite(tx: &mut Tx, app: &App, key: &DataKey, invite: &Invite, link: &str) -> Result<()> {
    let workspace = workspaces::find(tx).await?.map(|workspace| workspace.name).unwrap_or_default();
    let name: String = workspace.chars().filter(|c| !c.is_control()).take(80).collect();
    let text = format!(
        "You have been invited to the workspace \"{name}\".\n\nOpen this link to accept. It works once, until {}:\n\n{link}\n\n\
         If you did not expect this message, ignore it.\n",
        invite.expires_at
    );
    enqueue_system(tx, app, key, &invite.email, format!("Invite to {name}"), text).await
}

fn link(app: &App, token: &str) -> String {
    format!("{}/invite#{token}", app.settings().public_url)
}
