//! Send policies of the workspace and of mailboxes: a form for each, and what would happen to a message to an address.

use askama::Template;
use axum::{
    Router,
    extract::{Path, RawQuery, Request},
    response::Response,
    routing::{get, post},
};
use model::{
    send_policies::{PolicyCheck, PolicyVerdict, SendPolicy},
    sending::NewMail,
};
use operations::{Error, ErrorKind, Result, send_policies};
use serde_json::json;

use super::{
    confirm::{Question, confirmed},
    fields::{Fields, input},
    form_state::FormState,
    links::encoded,
    message_badges::capital,
    page::{self, html},
    review_words::reason_sentence,
    send_policy_form::{self, MODES, NEW_RECIPIENT, PolicyFields, QUIET, REVIEWS, SCANS},
    shell::Shell,
    sidebar::fill_sidebar,
    time::Zone,
    visit::Visit,
};
use crate::State;

const OF_WORKSPACE: &str = "/console/send-policy";

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route(OF_WORKSPACE, get(workspace_page).post(save_of_workspace))
        .route("/console/m/{mailbox}/send-policy", get(mailbox_page).post(save_of_mailbox))
        .route("/console/m/{mailbox}/send-policy/delete", post(delete_of_mailbox))
}

/// What would happen to a message, in words.
struct Trial {
    address: String,
    mailbox: String,
    /// The kind of the note, and its text; empty before something was tried.
    kind: &'static str,
    said: String,
}

#[derive(Template)]
#[template(path = "console/send_policy.html")]
struct PolicyPage {
    shell: Shell,
    /// The name of the mailbox; empty for the workspace.
    name: String,
    action: String,
    has_own: bool,
    fields: PolicyFields,
    zones: Vec<String>,
    may_change: bool,
    trial: Trial,
    form: FormState,
}

/// Whose policy a page is about.
enum Owner {
    Workspace,
    Mailbox(String),
}

impl Owner {
    fn url(&self) -> String {
        match self {
            Self::Workspace => OF_WORKSPACE.to_owned(),
            Self::Mailbox(id) => format!("/console/m/{}/send-policy", encoded(id)),
        }
    }

    /// The policy that is shown: of a mailbox without one of its own, that of the workspace.
    async fn read(&self, visit: &Visit) -> Result<SendPolicy> {
        match self {
            Self::Workspace => send_policies::get(visit.app(), &visit.call(&send_policies::GET)?).await,
            Self::Mailbox(id) => {
                let call = visit.call(&send_policies::GET_OF_MAILBOX)?;
                send_policies::get_of_mailbox(visit.app(), &call, id).await
            }
        }
    }

    async fn set(&self, visit: &Visit, fields: &Fields) -> Result<()> {
        let policy = send_policy_form::policy(fields, &self.read(visit).await?)?;
        match self {
            Self::Workspace => {
                send_policies::set(visit.app(), &visit.call(&send_policies::SET)?, policy).await?;
            }
            Self::Mailbox(id) => {
                let call = visit.call(&send_policies::SET_OF_MAILBOX)?;
                send_policies::set_of_mailbox(visit.app(), &call, id, policy).await?;
            }
        }
        Ok(())
    }
}

async fn workspace_page(visit: Visit, RawQuery(query): RawQuery) -> Response {
    let query = Fields::parse(query.unwrap_or_default().as_bytes());
    visit.answer(Box::pin(show(&visit, &Owner::Workspace, &query, FormState::default()))).await
}

async fn mailbox_page(visit: Visit, Path(mailbox): Path<String>, RawQuery(query): RawQuery) -> Response {
    let query = Fields::parse(query.unwrap_or_default().as_bytes());
    let owner = Owner::Mailbox(mailbox);
    visit.answer(Box::pin(show(&visit, &owner, &query, FormState::default()))).await
}

async fn show(visit: &Visit, owner: &Owner, query: &Fields, form: FormState) -> Result<Response> {
    let policy = owner.read(visit).await?;
    let (part, mut name, mut has_own) = match owner {
        Owner::Workspace => ("send-policy", String::new(), true),
        Owner::Mailbox(_) => ("mailbox-settings", String::new(), false),
    };
    let mut shell = visit.shell("Send policy", part).await?;
    let mut tried = query.get("mailbox").to_owned();
    if let Owner::Mailbox(id) = owner {
        fill_sidebar(visit, &mut shell, id).await?;
        name = shell.open_mailbox().map_or_else(|| id.clone(), |one| one.name.clone());
        let call = visit.call(&send_policies::GET_OF_MAILBOX)?;
        has_own = send_policies::has_own(visit.app(), &call, id).await?;
        tried.clone_from(id);
    } else if tried.is_empty() {
        tried = shell.mailboxes.first().map(|one| one.id.clone()).unwrap_or_default();
    }
    html(&PolicyPage {
        fields: PolicyFields::of(&policy, &shell.zone.name),
        zones: jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect(),
        action: owner.url(),
        may_change: visit.may(match owner {
            Owner::Workspace => &send_policies::SET,
            Owner::Mailbox(_) => &send_policies::SET_OF_MAILBOX,
        }),
        trial: trial(visit, &shell.zone, tried, query.get("address").trim()).await,
        name,
        has_own,
        form,
        shell,
    })
}

/// Tries the policies out on a message to an address.
async fn trial(visit: &Visit, zone: &Zone, mailbox: String, address: &str) -> Trial {
    let mut trial = Trial { address: address.to_owned(), mailbox, kind: "", said: String::new() };
    if address.is_empty() {
        return trial;
    }
    let checked = async {
        let mail: NewMail = input(&json!({ "to": address, "subject": "Test", "text": "Test" }))?;
        send_policies::check(visit.app(), &visit.call(&send_policies::CHECK)?, &trial.mailbox, mail).await
    };
    (trial.kind, trial.said) = match checked.await {
        Ok(check) => in_words(&check, zone),
        Err(refused) => ("failed", page::explain(&refused)),
    };
    trial
}

fn in_words(check: &PolicyCheck, zone: &Zone) -> (&'static str, String) {
    let reasons: Vec<&str> =
        check.reasons.iter().filter_map(|reason| reason_sentence(reason.code.as_str())).collect();
    let because =
        if reasons.is_empty() { String::new() } else { format!(" {}.", capital(&reasons.join("; "))) };
    match check.verdict {
        PolicyVerdict::Send => ("done", "It would be sent at once.".to_owned()),
        PolicyVerdict::Schedule => {
            let at = check.scheduled_send_at.map(|at| zone.when(at).full).unwrap_or_default();
            ("warn", format!("It would be sent {at}.{because}"))
        }
        PolicyVerdict::Review => ("warn", format!("A person would decide about it first.{because}")),
        PolicyVerdict::Block => ("failed", format!("It would be refused.{because}")),
    }
}

async fn save(visit: &Visit, owner: Owner, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    match owner.set(visit, &fields).await {
        Ok(()) => {
            let done = (owner.url(), "Send policy saved.".to_owned());
            visit.act(&owner.url(), async { Ok(done) }).await
        }
        Err(refused) if matches!(refused.kind(), ErrorKind::ValidationFailed) => {
            let form = FormState::refused_at(fields, &refused, send_policy_form::place);
            visit.again(&refused, Box::pin(show(visit, &owner, &Fields::default(), form))).await
        }
        Err(refused) => visit.act(&owner.url(), async { Err::<_, Error>(refused) }).await,
    }
}

async fn save_of_workspace(visit: Visit, request: Request) -> Response {
    save(&visit, Owner::Workspace, request).await
}

async fn save_of_mailbox(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    save(&visit, Owner::Mailbox(mailbox), request).await
}

async fn delete_of_mailbox(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let back = Owner::Mailbox(mailbox.clone()).url();
    let question = Question {
        title: "Remove this send policy?",
        text: "The mailbox then does as the workspace says.",
        button: "Remove policy",
        cancel: &back,
        typed: "",
    };
    confirmed(&visit, request, &question, async |_| {
        let work = async {
            let call = visit.call(&send_policies::DELETE_OF_MAILBOX)?;
            send_policies::delete_of_mailbox(visit.app(), &call, &mailbox).await?;
            let target = format!("/console/m/{}/settings", encoded(&mailbox));
            Ok((target, "Send policy removed. The mailbox does as the workspace says.".to_owned()))
        };
        visit.act(&back, work).await
    })
    .await
}
