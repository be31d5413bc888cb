//! Knowledge: documents and their progress, what the workspace remembers, and a search over all of it.

use askama::Template;
use axum::{
    Router,
    extract::{DefaultBodyLimit, Path, RawQuery, Request},
    response::Response,
    routing::{get, post},
};
use model::{
    knowledge::{Document, DocumentQuery, DocumentStatus, MAX_DOCUMENT_BYTES, NewDocument},
    memory::{MemoryCredentials, MemorySource, MemoryStatus, Recall, Remember, Snippet},
};
use operations::{Error, Result, knowledge, memory};
use serde_json::json;

use super::{
    confirm::{Question, confirmed},
    fields::{Fields, input},
    form_state::{FormState, Labels},
    links::encoded,
    message_form::read_form,
    page::{self, html},
    shell::Shell,
    text::counted,
    time::{When, Zone, size},
    visit::Visit,
};
use crate::{State, reply};

const HERE: &str = "/console/knowledge";
const FILE_LABELS: Labels = &[
    ("file", "file", "File"),
    ("content", "file", "File"),
    ("name", "file", "File"),
    ("type", "file", "File"),
];
const TEXT_LABELS: Labels = &[("text", "text", "Text")];
/// The largest form with a document: the document and its multipart framing.
const MAX_FORM_BYTES: usize = MAX_DOCUMENT_BYTES + (1 << 20);

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route(HERE, get(show).post(add))
        .route("/console/knowledge/list", get(rows))
        .route("/console/knowledge/new", get(document_page))
        .route("/console/knowledge/remember", get(memory_page).post(remember))
        .route("/console/knowledge/verify", post(verify_store))
        .route("/console/knowledge/d/{document}/download", get(download))
        .route("/console/knowledge/d/{document}/verify", post(verify))
        .route("/console/knowledge/d/{document}/delete", post(delete))
        .route("/console/knowledge/m/{blob}/forget", post(forget))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
}

struct Row {
    id: String,
    name: String,
    kind: &'static str,
    size: String,
    state: String,
    mark: &'static str,
    /// Why it failed.
    said: String,
    /// Progress in percent, while it is being indexed.
    percent: Option<i64>,
    added: When,
}

fn row(zone: &Zone, document: Document) -> Row {
    let (done, all) = (document.chunks_done, document.chunk_count);
    let percent = (document.status == DocumentStatus::Indexing).then(|| done * 100 / all.max(1));
    let (mark, state) = match document.status {
        DocumentStatus::Ready => ("ok", format!("ready, {}", counted(all, "passage"))),
        DocumentStatus::Indexing if all == 0 => ("info", "queued".to_owned()),
        DocumentStatus::Indexing => ("info", format!("{done} of {}", counted(all, "passage"))),
        DocumentStatus::Failed => ("bad", "failed".to_owned()),
    };
    Row {
        id: document.id.as_str().to_owned(),
        name: document.name,
        kind: document.kind.as_str(),
        size: size(document.size),
        state,
        mark,
        said: document.last_error.unwrap_or_default(),
        percent,
        added: zone.when(document.created_at),
    }
}

struct SnippetRow {
    text: String,
    distance: String,
    source: &'static str,
    from: String,
    /// The URL of the email.
    url: Option<String>,
    /// The URL that forgets it.
    forget: Option<String>,
    at: When,
}

fn found(zone: &Zone, snippet: Snippet) -> SnippetRow {
    let mail = snippet.mailbox_id.as_ref().zip(snippet.email_id.as_ref());
    SnippetRow {
        distance: format!("{:.2}", snippet.distance),
        source: snippet.source.as_str(),
        from: snippet.document_name.or(snippet.mailbox_email).unwrap_or_default(),
        url: mail.map(|(mailbox, email)| {
            format!("/console/m/{}/e/{}", encoded(mailbox.as_str()), encoded(email.as_str()))
        }),
        forget: (snippet.source != MemorySource::Document)
            .then(|| format!("{HERE}/m/{}/forget", encoded(&snippet.blob_id))),
        text: snippet.text,
        at: zone.when(snippet.created_at),
    }
}

#[derive(Template)]
#[template(path = "console/knowledge.html")]
struct KnowledgePage {
    shell: Shell,
    rows: Vec<Row>,
    /// Whether a document is being indexed, so that the list polls, and its URL.
    busy: bool,
    here: String,
    next: Option<String>,
    asked: String,
    /// Where to search: value, name, whether it is chosen.
    sources: [(&'static str, &'static str, bool); 3],
    found: Option<Vec<SnippetRow>>,
    said: String,
    about: MemoryCredentials,
    passages: String,
    ready: bool,
    form: FormState,
}

#[derive(Template)]
#[template(path = "console/document_new.html")]
struct NewDocumentPage {
    shell: Shell,
    form: FormState,
}

#[derive(Template)]
#[template(path = "console/memory_new.html")]
struct NewMemoryPage {
    shell: Shell,
    form: FormState,
}

#[derive(Template)]
#[template(path = "console/knowledge_rows.html")]
struct DocumentList {
    rows: Vec<Row>,
    busy: bool,
    here: String,
    next: Option<String>,
}

async fn documents(visit: &Visit, zone: &Zone, query: &Fields) -> Result<(Vec<Row>, Option<String>)> {
    let request: DocumentQuery =
        input(&json!({ "limit": visit.limits().rows_per_page, "cursor": query.given("cursor") }))?;
    let call = visit.call(&knowledge::LIST)?;
    let page = knowledge::list(visit.app(), &call, request).await?;
    let rows = page.documents.into_iter().map(|one| row(zone, one)).collect();
    Ok((rows, page.next_cursor.map(|cursor| format!("{HERE}?cursor={}", encoded(&cursor)))))
}

/// The URL of the list alone, at the page's position.
fn list_url(query: &Fields) -> String {
    match query.given("cursor") {
        Some(cursor) => format!("{HERE}/list?cursor={}", encoded(cursor)),
        None => format!("{HERE}/list"),
    }
}

fn is_busy(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.percent.is_some())
}

async fn show(visit: Visit, RawQuery(query): RawQuery) -> Response {
    let query = Fields::parse(query.unwrap_or_default().as_bytes());
    visit.answer(knowledge_page(&visit, &query)).await
}

async fn knowledge_page(visit: &Visit, query: &Fields) -> Result<Response> {
    let shell = visit.shell("Knowledge", "knowledge").await?;
    let (rows, next) = documents(visit, &shell.zone, query).await?;
    let about = memory::credentials(visit.app(), &visit.call(&memory::CREDENTIALS)?).await?;
    let asked = query.get("q").trim().to_owned();
    let (mut results, mut said) = (None, String::new());
    if !asked.is_empty() {
        match recall(visit, query, &asked).await {
            Ok(snippets) => results = Some(snippets.into_iter().map(|one| found(&shell.zone, one)).collect()),
            Err(refused) => said = page::explain(&refused),
        }
    }
    let (busy, ready) = (is_busy(&rows), about.status == MemoryStatus::Ready);
    let chosen = query.all("source");
    let source = |value: &'static str, name| (value, name, chosen.contains(&value));
    let sources = [source("memory", "Memories"), source("document", "Documents"), source("email", "Mail")];
    let here = list_url(query);
    let found = results;
    let (passages, form) = (counted(about.passages, "passage"), FormState::default());
    html(&KnowledgePage {
        shell,
        rows,
        busy,
        here,
        next,
        asked,
        sources,
        found,
        said,
        about,
        passages,
        ready,
        form,
    })
}

async fn recall(visit: &Visit, query: &Fields, asked: &str) -> Result<Vec<Snippet>> {
    let mut body = json!({ "query": asked, "limit": 10 });
    let sources = query.all("source");
    if !sources.is_empty() {
        body["sources"] = json!(sources);
    }
    let request: Recall = input(&body)?;
    Ok(memory::recall(visit.app(), &visit.call(&memory::RECALL)?, request).await?.snippets)
}

/// The list alone, polled while documents are being indexed.
async fn rows(visit: Visit, RawQuery(query): RawQuery) -> Response {
    let query = Fields::parse(query.unwrap_or_default().as_bytes());
    let part = async {
        let zone = visit.zone().await?;
        let (rows, next) = documents(&visit, &zone, &query).await?;
        let (busy, here) = (is_busy(&rows), list_url(&query));
        html(&DocumentList { rows, busy, here, next })
    };
    visit.answer(part).await
}

/// The media type of a file, by its extension.
fn kind_of(name: &str) -> Result<&'static str> {
    let ending = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    Ok(match ending.as_str() {
        "txt" | "text" | "csv" | "log" => "text",
        "md" | "markdown" => "markdown",
        "htm" | "html" => "html",
        "pdf" => "pdf",
        "eml" => "eml",
        _ => return Err(Error::invalid("file", "choose a text, Markdown, HTML, PDF or EML file")),
    })
}

async fn show_document_form(visit: &Visit, form: FormState) -> Result<Response> {
    visit.call(&knowledge::ADD)?;
    html(&NewDocumentPage { shell: visit.shell("Add a document", "knowledge").await?, form })
}

async fn show_memory_form(visit: &Visit, form: FormState) -> Result<Response> {
    visit.call(&memory::REMEMBER)?;
    html(&NewMemoryPage { shell: visit.shell("Add a memory", "knowledge").await?, form })
}

async fn document_page(visit: Visit) -> Response {
    visit.answer(show_document_form(&visit, FormState::default())).await
}

async fn memory_page(visit: Visit) -> Response {
    visit.answer(show_memory_form(&visit, FormState::default())).await
}

async fn add(visit: Visit, request: Request) -> Response {
    let work = async {
        let form = read_form(&visit, request).await?;
        let Some(file) = form.files.first() else { return Err(Error::invalid("file", "choose a file")) };
        let name = file["filename"].as_str().unwrap_or_default();
        let body = json!({ "name": name, "type": kind_of(name)?, "content": file["content"] });
        let request: NewDocument = input(&body)?;
        knowledge::add(visit.app(), &visit.call(&knowledge::ADD)?, request).await
    };
    match work.await {
        Ok(added) => {
            let said = format!("“{}” uploaded. It is being indexed.", added.name);
            visit.act(HERE, async { Ok((HERE.to_owned(), said)) }).await
        }
        Err(refused) => {
            // A browser does not send a file's place, so it has to be chosen again.
            let form = FormState::refused(Fields::default(), &refused, FILE_LABELS);
            visit.again(&refused, show_document_form(&visit, form)).await
        }
    }
}

async fn remember(visit: Visit, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let work = async {
        let request: Remember = input(&json!({ "text": fields.get("text").replace("\r\n", "\n") }))?;
        memory::remember(visit.app(), &visit.call(&memory::REMEMBER)?, request).await
    };
    match work.await {
        Ok(_) => visit.act(HERE, async { Ok((HERE.to_owned(), "Memory saved.".to_owned())) }).await,
        Err(refused) => {
            let form = FormState::refused(fields, &refused, TEXT_LABELS);
            visit.again(&refused, show_memory_form(&visit, form)).await
        }
    }
}

async fn verify_store(visit: Visit) -> Response {
    let work = async {
        let tried = memory::verify(visit.app(), &visit.call(&memory::VERIFY)?).await?;
        let took = tried.took_ms;
        Ok((
            HERE.to_owned(),
            format!("Memory works: a test text was stored, recalled and deleted in {took} ms."),
        ))
    };
    visit.act(HERE, work).await
}

async fn forget(visit: Visit, Path(blob): Path<String>, request: Request) -> Response {
    let question = Question {
        title: "Forget this?",
        text: "Agents can no longer recall it.",
        button: "Forget",
        cancel: HERE,
        typed: "",
    };
    confirmed(&visit, request, &question, |_| {
        visit.act(HERE, async {
            memory::forget(visit.app(), &visit.call(&memory::FORGET)?, blob).await?;
            Ok((HERE.to_owned(), "Forgotten.".to_owned()))
        })
    })
    .await
}

async fn download(visit: Visit, Path(document): Path<String>) -> Response {
    let work = async {
        let call = visit.call(&knowledge::DOWNLOAD)?;
        let file = knowledge::download(visit.app(), &call, document.as_str().into()).await?;
        reply::download(&visit.headers, file)
    };
    visit.answer(work).await
}

async fn verify(visit: Visit, Path(document): Path<String>) -> Response {
    let work = async {
        let call = visit.call(&knowledge::VERIFY)?;
        let check = knowledge::verify(visit.app(), &call, document.as_str().into()).await?;
        if check.ok {
            return Ok((
                HERE.to_owned(),
                "Document verified: the file and all its passages are intact.".to_owned(),
            ));
        }
        Err(Error::invalid("document", check.problems.join(" ")))
    };
    visit.act(HERE, work).await
}

async fn delete(visit: Visit, Path(document): Path<String>, request: Request) -> Response {
    let question = Question {
        title: "Delete this document?",
        text: "Agents can no longer recall it.",
        button: "Delete document",
        cancel: HERE,
        typed: "",
    };
    confirmed(&visit, request, &question, |_| {
        visit.act(HERE, async {
            let call = visit.call(&knowledge::DELETE)?;
            knowledge::delete(visit.app(), &call, document.as_str().into()).await?;
            Ok((HERE.to_owned(), "Document deleted.".to_owned()))
        })
    })
    .await
}
