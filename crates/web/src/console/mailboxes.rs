//! Mailboxes: creating one, its settings, folders and labels, deleting it.

use askama::Template;
use axum::{
    Router,
    extract::{Path, Request},
    response::Response,
    routing::{get, post},
};
use model::{
    domains::DomainStatus,
    folders::FolderName,
    labels::NewLabel,
    mailboxes::{MailboxChange, MailboxSettings, NewMailbox},
};
use operations::{Error, Result, domains, folders, labels, mailboxes, send_policies};
use serde_json::{Value, json};

use super::{
    confirm::{Question, confirmed},
    fields::{Fields, input},
    form_state::{FormState, Labels},
    links::encoded,
    page::{self, html},
    shell::Shell,
    sidebar::fill_sidebar,
    text::counted,
    time::When,
    visit::Visit,
};
use crate::State;

const NEW_LABELS: Labels = &[("name", "name", "Name"), ("email", "local", "Address")];
const SETTINGS_LABELS: Labels = &[
    ("name", "name", "Name"),
    ("settings.fromName", "from_name", "Sender name"),
    ("settings.signature.text", "signature", "Signature"),
    ("settings.autoReply.subject", "reply_subject", "Subject"),
    ("settings.autoReply.message", "reply_text", "Message"),
    ("settings.autoReply", "reply_text", "Message"),
    ("settings.forwarding.email", "forward_to", "Forward to"),
    ("settings.forwarding", "forward_to", "Forward to"),
];
const FOLDER_LABELS: Labels = &[("name", "name", "New folder")];
const LABEL_LABELS: Labels =
    &[("name", "name", "New label"), ("rules", "rules", "Rule"), ("color", "color", "Color")];

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/mailboxes/new", get(new_page).post(create))
        .route("/console/m/{mailbox}/settings", get(settings_page).post(save))
        .route("/console/m/{mailbox}/delete", post(delete))
        .route("/console/m/{mailbox}/folders", post(add_folder))
        .route("/console/m/{mailbox}/folders/{folder}/delete", post(delete_folder))
        .route("/console/m/{mailbox}/labels", post(add_label))
        .route("/console/m/{mailbox}/labels/{label}/delete", post(delete_label))
}

#[derive(Template)]
#[template(path = "console/mailbox_new.html")]
struct NewPage {
    shell: Shell,
    domains: Vec<String>,
    form: FormState,
}

/// The domains that an address can have: the server's and the workspace's own.
async fn address_domains(visit: &Visit) -> Result<Vec<String>> {
    let mut all = visit.app().settings().hosted_domains.clone();
    if let Ok(call) = visit.call(&domains::LIST) {
        let own = domains::list(visit.app(), &call).await?;
        all.extend(own.into_iter().filter(|one| one.status == DomainStatus::Verified).map(|one| one.domain));
    }
    Ok(all)
}

async fn show_new(visit: &Visit, form: FormState) -> Result<Response> {
    visit.call(&mailboxes::CREATE)?;
    let shell = visit.shell("New mailbox", "new-mailbox").await?;
    html(&NewPage { shell, domains: address_domains(visit).await?, form })
}

async fn new_page(visit: Visit) -> Response {
    visit.answer(show_new(&visit, FormState::default())).await
}

/// The address that the form asks for; nothing for a made-up one on the default domain.
fn wanted_address(visit: &Visit, fields: &Fields) -> Option<String> {
    let (app, domain) = (visit.app(), fields.get("domain"));
    match fields.given("local") {
        Some(local) => Some(format!("{local}@{domain}")),
        None if domain.is_empty()
            || app.settings().hosted_domains.first().is_some_and(|own| own == domain) =>
        {
            None
        }
        None => Some(format!("{}@{domain}", mailboxes::generate_local_part(app, fields.get("name")))),
    }
}

async fn create(visit: Visit, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let created = async {
        let email = wanted_address(&visit, &fields);
        let request: NewMailbox = input(&json!({ "name": fields.get("name"), "email": email }))?;
        mailboxes::create(visit.app(), &visit.call(&mailboxes::CREATE)?, request).await
    };
    match created.await {
        Ok(created) => {
            let target = format!("/console/m/{}/f/inbox", encoded(created.id.as_str()));
            let said = format!("{} is ready to receive mail.", created.email);
            visit.act("/console", async { Ok((target, said)) }).await
        }
        Err(refused) => {
            let form = FormState::refused(fields, &refused, NEW_LABELS);
            visit.again(&refused, show_new(&visit, form)).await
        }
    }
}

/// A folder or label in the settings.
struct Item {
    id: String,
    name: String,
    color: String,
    more: String,
}

#[derive(Template)]
#[template(path = "console/mailbox_settings.html")]
struct SettingsPage {
    shell: Shell,
    id: String,
    name: String,
    email: String,
    settings: MailboxSettings,
    forward_to: String,
    allow: String,
    block: String,
    stored: String,
    made: When,
    folders: Vec<Item>,
    labels: Vec<Item>,
    may_change: bool,
    may_delete: bool,
    has_policy: bool,
    forms: Forms,
}

/// The forms of the settings page, of which one may have been refused.
#[derive(Default)]
struct Forms {
    settings: FormState,
    folder: FormState,
    label: FormState,
}

async fn settings_page(visit: Visit, Path(mailbox): Path<String>) -> Response {
    visit.answer(show_settings(&visit, &mailbox, Forms::default())).await
}

async fn show_settings(visit: &Visit, mailbox: &str, forms: Forms) -> Result<Response> {
    let mut shell = visit.shell("Mailbox settings", "mailbox-settings").await?;
    let app = visit.app();
    let found = mailboxes::get(app, &visit.call(&mailboxes::GET)?, mailbox).await?;
    let storage = mailboxes::storage(app, &visit.call(&mailboxes::STORAGE)?, mailbox).await?;
    let known = fill_sidebar(visit, &mut shell, found.id.as_str()).await?;
    let own = folders::list(app, &visit.call(&folders::LIST)?, mailbox).await?;
    let custom = own.into_iter().filter(|folder| !folder.system).map(|folder| Item {
        id: folder.id.as_str().to_owned(),
        name: folder.name,
        color: String::new(),
        more: counted(folder.total_count, "email"),
    });
    let labels = known.into_iter().map(|label| Item {
        id: label.id.as_str().to_owned(),
        name: label.name,
        color: label.color,
        more: label.rules,
    });
    #[expect(clippy::cast_possible_truncation, reason = "a size to be read by people")]
    let stored = (storage.storage_gb * 1e9) as i64;
    let settings = found.settings;
    let call = visit.call(&send_policies::GET_OF_MAILBOX)?;
    let has_policy = send_policies::has_own(app, &call, mailbox).await?;
    html(&SettingsPage {
        id: found.id.as_str().to_owned(),
        name: found.name,
        email: found.email,
        forward_to: settings.forwarding.email.as_ref().map(ToString::to_string).unwrap_or_default(),
        allow: settings.sender_policy.allow.join("\n"),
        block: settings.sender_policy.block.join("\n"),
        stored: super::time::size(stored),
        made: shell.zone.when(found.created_at),
        folders: custom.collect(),
        labels: labels.collect(),
        may_change: visit.may(&mailboxes::UPDATE),
        may_delete: visit.may(&mailboxes::DELETE),
        has_policy,
        settings,
        forms,
        shell,
    })
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// The settings that the form shows; others stay unchanged.
fn changed(present: &MailboxSettings, fields: &Fields) -> Result<Value> {
    let mut settings = serde_json::to_value(present).map_err(operations::Error::internal)?;
    settings["fromName"] = json!(fields.get("from_name"));
    settings["signature"] = json!({ "enabled": fields.ticked("signature_on"), "text": fields.get("signature").replace("\r\n", "\n") });
    settings["autoReply"] = json!({
        "enabled": fields.ticked("reply_on"), "subject": fields.get("reply_subject"),
        "message": fields.get("reply_text").replace("\r\n", "\n"),
    });
    settings["forwarding"] =
        json!({ "enabled": fields.ticked("forward_on"), "email": fields.given("forward_to") });
    settings["spam"] = json!({ "toSpamFolder": fields.ticked("spam_on") });
    settings["senderPolicy"] =
        json!({ "allow": lines(fields.get("allow")), "block": lines(fields.get("block")) });
    Ok(settings)
}

async fn save(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let saved = async {
        let app = visit.app();
        let found = mailboxes::get(app, &visit.call(&mailboxes::GET)?, &mailbox).await?;
        let settings = changed(&found.settings, &fields)?;
        let change: MailboxChange = input(&json!({ "name": fields.get("name"), "settings": settings }))?;
        mailboxes::update(app, &visit.call(&mailboxes::UPDATE)?, &mailbox, change).await.map(|_| ())
    };
    let outcome = saved.await;
    finish(&visit, &mailbox, outcome, "Settings saved.", |refused| Forms {
        settings: FormState::refused_at(fields, refused, settings_field),
        ..Forms::default()
    })
    .await
}

/// The field of an input of the settings, and its label.
fn settings_field(path: &str) -> Option<(String, String)> {
    let known = SETTINGS_LABELS.iter().find(|(name, ..)| *name == path);
    let list = |name: &str| path.starts_with(&format!("settings.senderPolicy.{name}"));
    let of = |field: &str, label: &str| Some((field.to_owned(), label.to_owned()));
    match known {
        Some((_, field, label)) => of(field, label),
        None if list("allow") => of("allow", "Allowed senders"),
        None if list("block") => of("block", "Blocked senders"),
        None => None,
    }
}

/// Responds to a form of the settings page: with a redirect to the page, or with the refused form on it.
async fn finish(
    visit: &Visit,
    mailbox: &str,
    outcome: Result<()>,
    said: &str,
    forms: impl FnOnce(&Error) -> Forms,
) -> Response {
    let back = format!("/console/m/{}/settings", encoded(mailbox));
    match outcome {
        Ok(()) => visit.act(&back, async { Ok((back.clone(), said.to_owned())) }).await,
        Err(refused) => visit.again(&refused, show_settings(visit, mailbox, forms(&refused))).await,
    }
}

async fn delete(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let back = format!("/console/m/{}/settings", encoded(&mailbox));
    let found = async { mailboxes::get(visit.app(), &visit.call(&mailboxes::GET)?, &mailbox).await };
    let email = match found.await {
        Ok(found) => found.email,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let question = Question {
        title: &format!("Delete mailbox {email}?"),
        text: "It stops receiving mail at once. Everything in it is deleted for good a few days later.",
        button: "Delete mailbox",
        cancel: &back,
        typed: &email,
    };
    confirmed(&visit, request, &question, |_| {
        visit.act(&back, async {
            mailboxes::delete(visit.app(), &visit.call(&mailboxes::DELETE)?, &mailbox).await?;
            Ok(("/console".to_owned(), "Mailbox deleted.".to_owned()))
        })
    })
    .await
}

async fn add_folder(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let made = async {
        let name: FolderName = input(&json!({ "name": fields.get("name") }))?;
        folders::create(visit.app(), &visit.call(&folders::CREATE)?, &mailbox, name).await.map(|_| ())
    };
    let outcome = made.await;
    finish(&visit, &mailbox, outcome, "Folder created.", |refused| Forms {
        folder: FormState::refused(fields, refused, FOLDER_LABELS),
        ..Forms::default()
    })
    .await
}

async fn delete_folder(
    visit: Visit,
    Path((mailbox, folder)): Path<(String, String)>,
    request: Request,
) -> Response {
    let back = format!("/console/m/{}/settings", encoded(&mailbox));
    let question = Question {
        title: "Delete this folder?",
        text: "Its emails move to Archive.",
        button: "Delete folder",
        cancel: &back,
        typed: "",
    };
    confirmed(&visit, request, &question, |_| {
        visit.act(&back, async {
            folders::delete(visit.app(), &visit.call(&folders::DELETE)?, &mailbox, folder.into()).await?;
            Ok((back.clone(), "Folder deleted.".to_owned()))
        })
    })
    .await
}

async fn add_label(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let made = async {
        let label: NewLabel = input(&json!({
            "name": fields.get("name"), "rules": fields.get("rules"),
            "color": fields.given("color").unwrap_or("#6b7280"),
        }))?;
        labels::create(visit.app(), &visit.call(&labels::CREATE)?, &mailbox, label).await.map(|_| ())
    };
    let outcome = made.await;
    finish(&visit, &mailbox, outcome, "Label created.", |refused| Forms {
        label: FormState::refused(fields, refused, LABEL_LABELS),
        ..Forms::default()
    })
    .await
}

async fn delete_label(
    visit: Visit,
    Path((mailbox, label)): Path<(String, String)>,
    request: Request,
) -> Response {
    let back = format!("/console/m/{}/settings", encoded(&mailbox));
    let question = Question {
        title: "Delete this label?",
        text: "It is removed from all emails.",
        button: "Delete label",
        cancel: &back,
        typed: "",
    };
    confirmed(&visit, request, &question, |_| {
        visit.act(&back, async {
            labels::delete(visit.app(), &visit.call(&labels::DELETE)?, &mailbox, label.into()).await?;
            Ok((back.clone(), "Label deleted.".to_owned()))
        })
    })
    .await
}
