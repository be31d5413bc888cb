//! A mailbox's triage: its triagers, their tasks and runs, and whether replies are drafted.

use askama::Template;
use axum::{
    Router,
    extract::{Path, RawQuery, Request},
    response::Response,
    routing::{get, post},
};
use model::{
    mailboxes::MailboxChange,
    tasks::{Task, TaskPriority, TaskQuery},
    triagers::{
        NewTriager, RecentRunsQuery, RunStatus, SourceKind, Triager, TriagerChange, TriagerRun, TriggerKind,
    },
};
use operations::{Result, assistant, emails, mailboxes, tasks, triagers};
use serde_json::json;

use super::{
    confirm::{Question, confirmed},
    fields::{Fields, input},
    form_state::FormState,
    links::encoded,
    page::{self, html},
    shell::Shell,
    sidebar::fill_sidebar,
    time::{When, Zone},
    triage_form::{Form, field_of, filled},
    visit::Visit,
};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/m/{mailbox}/triage", get(list))
        .route("/console/m/{mailbox}/triage/auto-draft", post(set_auto_draft))
        .route("/console/m/{mailbox}/triage/new", get(new_page).post(create))
        .route("/console/m/{mailbox}/triage/{triager}", get(one_page).post(save))
        .route("/console/m/{mailbox}/triage/{triager}/enabled", post(set_enabled))
        .route("/console/m/{mailbox}/triage/{triager}/default", post(make_default))
        .route("/console/m/{mailbox}/triage/{triager}/delete", post(delete))
        .route("/console/m/{mailbox}/triage/{triager}/talk", post(talk))
        .route("/console/m/{mailbox}/triage-tasks/{task}", post(set_task))
        .route("/console/m/{mailbox}/e/{email}", get(to_mail))
}

struct TriagerRow {
    id: String,
    name: String,
    default: bool,
    enabled: bool,
    triggers: String,
    tasks: String,
}

struct TaskRow {
    id: String,
    title: String,
    due: Option<When>,
    priority: &'static str,
    mark: &'static str,
    status: &'static str,
    found: When,
    mail: String,
}

struct RunRow {
    triager: String,
    source: &'static str,
    status: &'static str,
    mark: &'static str,
    summary: String,
    /// The text for the owner.
    notes: Vec<String>,
    at: When,
    mail: String,
    draft: Option<String>,
}

#[derive(Template)]
#[template(path = "console/triage.html")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the page that its template names")]
struct TriagePage {
    shell: Shell,
    id: String,
    model: bool,
    automations: bool,
    drafts: bool,
    approval: bool,
    triagers: Vec<TriagerRow>,
    tasks: Vec<TaskRow>,
    status: String,
    /// The URL of this page, to reload it.
    here: String,
    next: Option<String>,
    runs: Vec<RunRow>,
    may_change: bool,
    may_set: bool,
}

/// A trigger in words.
const fn trigger_name(kind: TriggerKind) -> &'static str {
    match kind {
        TriggerKind::MailReceived => "mail received",
        TriggerKind::MailSent => "mail sent",
        TriggerKind::MailReceivedOrSent => "mail received or sent",
        TriggerKind::CalendarCreated => "calendar invitation received",
        TriggerKind::CalendarUpdated => "calendar invitation changed",
        TriggerKind::CalendarCanceled => "calendar invitation canceled",
    }
}

const fn source_name(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::MailReceived => "mail received",
        SourceKind::MailSent => "mail sent",
        SourceKind::CalendarCreated => "calendar invitation received",
        SourceKind::CalendarUpdated => "calendar invitation changed",
        SourceKind::CalendarCanceled => "calendar invitation canceled",
        SourceKind::Manual => "manual run",
    }
}

fn triager_row(triager: &Triager) -> TriagerRow {
    let triggers = triager.triggers.iter().filter(|trigger| trigger.enabled);
    let tasks = triager.tasks.iter().filter(|task| task.enabled);
    TriagerRow {
        id: triager.id.as_str().to_owned(),
        name: triager.name.clone(),
        default: triager.is_default,
        enabled: triager.enabled,
        triggers: triggers.map(|trigger| trigger_name(trigger.kind)).collect::<Vec<_>>().join(", "),
        tasks: tasks.map(|task| super::triage_form::task_name(task.kind)).collect::<Vec<_>>().join(", "),
    }
}

fn mail_url(mailbox: &str, email: &str) -> String {
    format!("/console/m/{}/e/{}", encoded(mailbox), encoded(email))
}

fn task_row(zone: &Zone, mailbox: &str, task: Task) -> TaskRow {
    TaskRow {
        id: task.id.as_str().to_owned(),
        title: task.title,
        due: task.due_at.map(|at| zone.when(at)),
        priority: task.priority.as_str(),
        mark: match task.priority {
            TaskPriority::High => "bad",
            TaskPriority::Normal => "info",
            TaskPriority::Low => "",
        },
        status: task.status.as_str(),
        found: zone.when(task.created_at),
        mail: mail_url(mailbox, task.email_id.as_str()),
    }
}

fn run_row(zone: &Zone, mailbox: &str, run: TriagerRun) -> RunRow {
    let draft = run.tasks.iter().find_map(|task| task.draft_id.as_ref());
    RunRow {
        triager: run.triager.name,
        source: source_name(run.source.kind),
        status: match run.status {
            RunStatus::Running => "running",
            RunStatus::Succeeded => "done",
            RunStatus::Failed => "failed",
            RunStatus::Skipped => "skipped",
        },
        mark: match run.status {
            RunStatus::Running => "info",
            RunStatus::Succeeded => "ok",
            RunStatus::Failed => "bad",
            RunStatus::Skipped => "",
        },
        summary: run.summary,
        notes: run.tasks.iter().filter_map(|task| task.notification.clone()).collect(),
        at: zone.when(run.finished_at.unwrap_or(run.started_at)),
        mail: mail_url(mailbox, run.source.email_id.as_str()),
        draft: draft
            .map(|id| format!("/console/m/{}/compose?draft={}", encoded(mailbox), encoded(id.as_str()))),
    }
}

async fn list(visit: Visit, Path(mailbox): Path<String>, RawQuery(query): RawQuery) -> Response {
    visit
        .answer(async {
            let fields = Fields::parse(query.unwrap_or_default().as_bytes());
            let app = visit.app();
            let mut shell = visit.shell("Triage", "triage").await?;
            let found = mailboxes::get(app, &visit.call(&mailboxes::GET)?, &mailbox).await?;
            let id = found.id.as_str().to_owned();
            fill_sidebar(&visit, &mut shell, &id).await?;
            let all = triagers::list(app, &visit.call(&triagers::LIST)?, &mailbox).await?;
            let request: RecentRunsQuery = input(&json!({ "limit": visit.limits().rows_per_page.min(20) }))?;
            let runs = triagers::recent(app, &visit.call(&triagers::RECENT)?, &mailbox, request).await?.runs;
            let status = fields.given("status").unwrap_or("open").to_owned();
            let request = json!({ "status": status, "limit": visit.limits().rows_per_page, "cursor": fields.given("cursor") });
            let request: TaskQuery = input(&request)?;
            let page = tasks::list(app, &visit.call(&tasks::LIST)?, &mailbox, request).await?;
            let at = |cursor: Option<&str>| {
                let mut pairs = form_urlencoded::Serializer::new(String::new());
                pairs.append_pair("status", &status);
                pairs.extend_pairs(cursor.map(|cursor| ("cursor", cursor)));
                format!("{}?{}", page_url(&id), pairs.finish())
            };
            let here = at(fields.given("cursor"));
            let next = page.next_cursor.map(|cursor| at(Some(&cursor)));
            html(&TriagePage {
                model: assistant::is_configured(app),
                automations: found.settings.agent_inbox.automations_enabled,
                drafts: found.settings.auto_draft.enabled,
                approval: found.settings.auto_draft.require_approval,
                triagers: all.iter().map(triager_row).collect(),
                tasks: page.tasks.into_iter().map(|task| task_row(&shell.zone, &id, task)).collect(),
                runs: runs.into_iter().map(|run| run_row(&shell.zone, &id, run)).collect(),
                may_change: visit.may(&triagers::UPDATE),
                may_set: visit.may(&mailboxes::UPDATE),
                here,
                next,
                status,
                id,
                shell,
            })
        })
        .await
}

fn page_url(mailbox: &str) -> String {
    format!("/console/m/{}/triage", encoded(mailbox))
}

async fn set_auto_draft(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let back = page_url(&mailbox);
    visit
        .act(&back, async {
            let fields = Fields::read(request).await?;
            let app = visit.app();
            let found = mailboxes::get(app, &visit.call(&mailboxes::GET)?, &mailbox).await?;
            let mut settings = serde_json::to_value(&found.settings).map_err(operations::Error::internal)?;
            let (on, approval) = (fields.ticked("drafts"), fields.ticked("approval"));
            settings["autoDraft"] = json!({ "enabled": on, "requireApproval": approval });
            settings["agentInbox"]["automationsEnabled"] = json!(fields.ticked("automations"));
            let change: MailboxChange = input(&json!({ "settings": settings }))?;
            mailboxes::update(app, &visit.call(&mailboxes::UPDATE)?, &mailbox, change).await?;
            Ok((back.clone(), "Settings saved.".to_owned()))
        })
        .await
}

#[derive(Template)]
#[template(path = "console/triager.html")]
struct TriagerPage {
    shell: Shell,
    id: String,
    form: Form,
    state: FormState,
    may_change: bool,
    model: bool,
}

async fn show(visit: &Visit, mailbox: &str, form: Form, state: FormState) -> Result<Response> {
    let mut shell = visit.shell("Triager", "triage").await?;
    let found = mailboxes::get(visit.app(), &visit.call(&mailboxes::GET)?, mailbox).await?;
    let id = found.id.as_str().to_owned();
    fill_sidebar(visit, &mut shell, &id).await?;
    let model = assistant::is_configured(visit.app());
    html(&TriagerPage { shell, id, form, state, may_change: visit.may(&triagers::UPDATE), model })
}

async fn new_page(visit: Visit, Path(mailbox): Path<String>) -> Response {
    visit.answer(show(&visit, &mailbox, Form::empty(), FormState::default())).await
}

async fn create(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let created = async {
        let request: NewTriager = input(&filled(&fields))?;
        triagers::create(visit.app(), &visit.call(&triagers::CREATE)?, &mailbox, request).await
    };
    match created.await {
        Ok(created) => {
            let said = format!("Triager “{}” created.", created.name);
            let target = page_url(&mailbox);
            visit.act(&target, async { Ok((target.clone(), said)) }).await
        }
        Err(refused) => {
            let form = Form::again("", &fields);
            let state = FormState::refused_at(fields.clone(), &refused, |path| field_of(&fields, path));
            visit.again(&refused, show(&visit, &mailbox, form, state)).await
        }
    }
}

async fn one_page(visit: Visit, Path((mailbox, triager)): Path<(String, String)>) -> Response {
    visit
        .answer(async {
            let call = visit.call(&triagers::GET)?;
            let found = triagers::get(visit.app(), &call, &mailbox, triager.into()).await?;
            show(&visit, &mailbox, Form::of(&found), FormState::default()).await
        })
        .await
}

async fn save(visit: Visit, Path((mailbox, triager)): Path<(String, String)>, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let saved = async {
        let change: TriagerChange = input(&filled(&fields))?;
        let call = visit.call(&triagers::UPDATE)?;
        triagers::update(visit.app(), &call, &mailbox, triager.clone().into(), change).await
    };
    match saved.await {
        Ok(saved) => {
            let target = page_url(&mailbox);
            visit
                .act(&target, async { Ok((target.clone(), format!("Triager “{}” saved.", saved.name))) })
                .await
        }
        Err(refused) => {
            let form = Form::again(&triager, &fields);
            let state = FormState::refused_at(fields.clone(), &refused, |path| field_of(&fields, path));
            visit.again(&refused, show(&visit, &mailbox, form, state)).await
        }
    }
}

async fn set_enabled(
    visit: Visit,
    Path((mailbox, triager)): Path<(String, String)>,
    request: Request,
) -> Response {
    let back = page_url(&mailbox);
    visit
        .act(&back, async {
            let fields = Fields::read(request).await?;
            let is_on = fields.get("enabled") == "true";
            let change: TriagerChange = input(&json!({ "enabled": is_on }))?;
            let call = visit.call(&triagers::UPDATE)?;
            triagers::update(visit.app(), &call, &mailbox, triager.into(), change).await?;
            let said = if is_on { "Triager turned on." } else { "Triager turned off." };
            Ok((back.clone(), said.to_owned()))
        })
        .await
}

async fn make_default(visit: Visit, Path((mailbox, triager)): Path<(String, String)>) -> Response {
    let back = page_url(&mailbox);
    visit
        .act(&back, async {
            let call = visit.call(&triagers::MAKE_DEFAULT)?;
            let updated = triagers::make_default(visit.app(), &call, &mailbox, triager.into()).await?;
            Ok((back.clone(), format!("“{}” is now the default triager.", updated.name)))
        })
        .await
}

async fn delete(
    visit: Visit,
    Path((mailbox, triager)): Path<(String, String)>,
    request: Request,
) -> Response {
    let back = page_url(&mailbox);
    let question = Question {
        title: "Delete this triager?",
        text: "Its tasks and drafts are kept.",
        button: "Delete triager",
        cancel: &back,
        typed: "",
    };
    confirmed(&visit, request, &question, |_| {
        visit.act(&back, async {
            let call = visit.call(&triagers::DELETE)?;
            triagers::delete(visit.app(), &call, &mailbox, triager.into()).await?;
            Ok((back.clone(), "Triager deleted.".to_owned()))
        })
    })
    .await
}

/// Redirects to the triager's own conversation with the agent.
async fn talk(visit: Visit, Path((mailbox, triager)): Path<(String, String)>) -> Response {
    visit
        .answer(async {
            let call = visit.call(&triagers::CONVERSATION)?;
            let found = triagers::conversation(visit.app(), &call, &mailbox, triager.into()).await?;
            let page_url = format!("/console/m/{}/agent/{}", encoded(&mailbox), encoded(found.id.as_str()));
            Ok(page::go_to(&visit.headers, &format!("{page_url}#end")))
        })
        .await
}

/// Redirects to the thread of an email, given only its id.
async fn to_mail(visit: Visit, Path((mailbox, email)): Path<(String, String)>) -> Response {
    visit
        .answer(async {
            let query = input(&json!({ "include_held": true, "metadata_only": true }))?;
            let call = visit.call(&emails::GET)?;
            let mail = emails::get(visit.app(), &call, &mailbox, email.into(), query).await?;
            let thread = mail.thread_id.map(|id| encoded(id.as_str())).unwrap_or_default();
            let folder = encoded(mail.folder_id.as_str());
            let target = format!("/console/m/{}/f/{folder}/{thread}", encoded(&mailbox));
            Ok(page::go_to(&visit.headers, &target))
        })
        .await
}

async fn set_task(visit: Visit, Path((mailbox, task)): Path<(String, String)>, request: Request) -> Response {
    let back = page_url(&mailbox);
    visit
        .act(&back, async {
            let fields = Fields::read(request).await?;
            let change = input(&json!({ "status": fields.get("status") }))?;
            let call = visit.call(&tasks::UPDATE)?;
            tasks::update(visit.app(), &call, &mailbox, task.into(), change).await?;
            let said = match fields.get("status") {
                "done" => "Task marked as done.",
                "dismissed" => "Task dismissed.",
                _ => "Task reopened.",
            };
            Ok((back.clone(), said.to_owned()))
        })
        .await
}
