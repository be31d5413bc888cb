//! Members and invites over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::members::{Invite, InviteWithLink, Member, MemberChange, NewInvite};
use operations::{App, Call, Result, members};

use super::paths::{InWorkspace, InvitePath, MemberPath};
use crate::{
    Endpoint,
    input::{Json, Path},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Members";
    let (all, one) =
        ("/api/v1/workspaces/{workspaceId}/members", "/api/v1/workspaces/{workspaceId}/members/{memberId}");
    let invites = "/api/v1/workspaces/{workspaceId}/invites";
    let invite_path = "/api/v1/workspaces/{workspaceId}/invites/{inviteId}";
    let resend_path = "/api/v1/workspaces/{workspaceId}/invites/{inviteId}/resend";
    vec![
        Endpoint::new(tag, Method::GET, all, &members::LIST, list),
        Endpoint::new(tag, Method::PUT, one, &members::UPDATE, update),
        Endpoint::new(tag, Method::DELETE, one, &members::REMOVE, remove),
        Endpoint::new(tag, Method::GET, invites, &members::LIST_INVITES, list_invites),
        Endpoint::new(tag, Method::POST, invites, &members::INVITE, invite),
        Endpoint::new(tag, Method::POST, resend_path, &members::RESEND_INVITE, resend_invite),
        Endpoint::new(tag, Method::DELETE, invite_path, &members::DELETE_INVITE, delete_invite),
    ]
}

async fn list(app: App, call: Arc<Call>, _: Path<InWorkspace>) -> Result<Vec<Member>> {
    members::list(&app, &call).await
}

async fn update(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(change)): (Path<MemberPath>, Json<MemberChange>),
) -> Result<Member> {
    members::update(&app, &call, path.member, change).await
}

async fn remove(app: App, call: Arc<Call>, Path(path): Path<MemberPath>) -> Result<()> {
    members::remove(&app, &call, path.member).await
}

async fn list_invites(app: App, call: Arc<Call>, _: Path<InWorkspace>) -> Result<Vec<Invite>> {
    members::list_invites(&app, &call).await
}

async fn invite(
    app: App,
    call: Arc<Call>,
    (_, Json(input)): (Path<InWorkspace>, Json<NewInvite>),
) -> Result<InviteWithLink> {
    members::invite(&app, &call, input).await
}

async fn resend_invite(app: App, call: Arc<Call>, Path(path): Path<InvitePath>) -> Result<InviteWithLink> {
    members::resend_invite(&app, &call, path.invite).await
}

async fn delete_invite(app: App, call: Arc<Call>, Path(path): Path<InvitePath>) -> Result<()> {
    members::delete_invite(&app, &call, path.invite).await
}
