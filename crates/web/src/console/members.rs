//! Members of the workspace and invites to it.

use std::collections::HashMap;

use askama::Template;
use axum::{
    Router,
    extract::{Path, Request},
    response::Response,
    routing::{get, post},
};
use model::{
    AccountId,
    members::{MemberChange, NewInvite},
};
use operations::{Result, members};
use serde_json::json;

use super::{
    confirm::{Question, confirmed},
    fields::{Fields, input},
    form_state::{FormState, Labels},
    page::{self, html},
    shell::Shell,
    time::When,
    visit::Visit,
};
use crate::State;

const HERE: &str = "/console/members";
const LABELS: Labels = &[("email", "email", "Email"), ("role", "role", "Role")];

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route(HERE, get(list))
        .route("/console/members/invite", get(invite_page).post(invite))
        .route("/console/members/{account}/role", post(set_role))
        .route("/console/members/{account}/remove", post(remove))
        .route("/console/invites/{invite}/resend", post(resend))
        .route("/console/invites/{invite}/withdraw", post(withdraw))
}

struct MemberRow {
    id: String,
    name: String,
    email: String,
    role: &'static str,
    joined: When,
    is_self: bool,
}

struct InviteRow {
    id: String,
    email: String,
    role: &'static str,
    expires: When,
}

#[derive(Template)]
#[template(path = "console/members.html")]
struct MembersPage {
    shell: Shell,
    members: Vec<MemberRow>,
    invites: Vec<InviteRow>,
    /// The person who was just invited, and their link.
    fresh: Option<(String, String)>,
    form: FormState,
}

#[derive(Template)]
#[template(path = "console/invite_new.html")]
struct NewInvitePage {
    shell: Shell,
    form: FormState,
}

async fn show(visit: &Visit, fresh: Option<(String, String)>) -> Result<Response> {
    let shell = visit.shell("Members", "members").await?;
    let app = visit.app();
    let own = visit.caller.actor.id();
    let all = members::list(app, &visit.call(&members::LIST)?).await?;
    let open = match visit.call(&members::LIST_INVITES) {
        Ok(call) => members::list_invites(app, &call).await?,
        Err(_) => Vec::new(),
    };
    let members = all
        .into_iter()
        .map(|one| MemberRow {
            is_self: one.id.as_str() == own,
            id: one.id.as_str().to_owned(),
            name: one.name,
            email: one.email,
            role: one.role.as_str(),
            joined: shell.zone.when(one.joined_at),
        })
        .collect();
    let invites = open
        .into_iter()
        .map(|one| InviteRow {
            id: one.id.as_str().to_owned(),
            email: one.email,
            role: one.role.as_str(),
            expires: shell.zone.when(one.expires_at),
        })
        .collect();
    html(&MembersPage { shell, members, invites, fresh, form: FormState::default() })
}

async fn show_form(visit: &Visit, form: FormState) -> Result<Response> {
    visit.call(&members::INVITE)?;
    html(&NewInvitePage { shell: visit.shell("Invite a member", "members").await?, form })
}

async fn list(visit: Visit) -> Response {
    visit.answer(show(&visit, None)).await
}

async fn invite_page(visit: Visit) -> Response {
    visit.answer(show_form(&visit, FormState::default())).await
}

async fn invite(visit: Visit, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let made = async {
        let role = fields.given("role").unwrap_or("member");
        let wanted: NewInvite = input(&json!({ "email": fields.get("email").trim(), "role": role }))?;
        members::invite(visit.app(), &visit.call(&members::INVITE)?, wanted).await
    };
    match made.await {
        Ok(made) => visit.answer(show(&visit, Some((made.invite.email, made.link)))).await,
        Err(refused) => {
            let form = FormState::refused(fields, &refused, LABELS);
            visit.again(&refused, show_form(&visit, form)).await
        }
    }
}

async fn resend(visit: Visit, Path(invite): Path<String>) -> Response {
    let made = async {
        let call = visit.call(&members::RESEND_INVITE)?;
        members::resend_invite(visit.app(), &call, invite.into()).await
    };
    match made.await {
        Ok(made) => visit.answer(show(&visit, Some((made.invite.email, made.link)))).await,
        Err(refused) => visit.act(HERE, async { Err(refused) }).await,
    }
}

async fn withdraw(visit: Visit, Path(invite): Path<String>, request: Request) -> Response {
    let question = Question {
        title: "Cancel this invite?",
        text: "Its link stops working.",
        button: "Cancel invite",
        cancel: HERE,
        typed: "",
    };
    confirmed(&visit, request, &question, |_| {
        visit.act(HERE, async {
            let call = visit.call(&members::DELETE_INVITE)?;
            members::delete_invite(visit.app(), &call, invite.into()).await?;
            Ok((HERE.to_owned(), "Invite canceled.".to_owned()))
        })
    })
    .await
}

async fn set_role(visit: Visit, Path(account): Path<String>, request: Request) -> Response {
    visit
        .act(HERE, async {
            let fields = Fields::read(request).await?;
            let change: MemberChange = input(&json!({ "role": fields.get("role") }))?;
            members::update(visit.app(), &visit.call(&members::UPDATE)?, account.into(), change).await?;
            Ok((HERE.to_owned(), "Role changed.".to_owned()))
        })
        .await
}

async fn remove(visit: Visit, Path(account): Path<String>, request: Request) -> Response {
    let question = Question {
        title: "Remove this member?",
        text: "They can no longer open this workspace.",
        button: "Remove member",
        cancel: HERE,
        typed: "",
    };
    confirmed(&visit, request, &question, |_| {
        visit.act(HERE, async {
            members::remove(visit.app(), &visit.call(&members::REMOVE)?, account.into()).await?;
            Ok((HERE.to_owned(), "Member removed.".to_owned()))
        })
    })
    .await
}

/// The names of members, to show who created something.
pub(super) struct Makers(HashMap<AccountId, String>);

impl Makers {
    pub(super) async fn load(visit: &Visit) -> Result<Self> {
        let all = members::list(visit.app(), &visit.call(&members::LIST)?).await?;
        Ok(Self(all.into_iter().map(|member| (member.id, member.name)).collect()))
    }

    /// The name of a creator.
    pub(super) fn name(&self, maker: Option<&AccountId>) -> String {
        match maker {
            None => "the workspace".to_owned(),
            Some(id) => self.0.get(id).cloned().unwrap_or_else(|| "a former member".to_owned()),
        }
    }
}
