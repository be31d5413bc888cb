//! Custom domains: the DNS records to publish, and a check of what is published.

use askama::Template;
use axum::{
    Router,
    extract::{Path, Request},
    response::Response,
    routing::{get, post},
};
use model::domains::{DomainStatus, EmailDomain, NewEmailDomain, RecordPurpose, RecordStatus};
use operations::{ErrorKind, Result, domains};
use serde_json::json;

use super::{
    confirm::{Question, confirmed},
    fields::{Fields, input},
    form_state::{FormState, Labels},
    page::{self, html},
    shell::Shell,
    time::{When, Zone},
    visit::Visit,
};
use crate::State;

const HERE: &str = "/console/domains";
const LABELS: Labels = &[("domain", "domain", "Domain")];

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route(HERE, get(list).post(create))
        .route("/console/domains/new", get(new_page))
        .route("/console/domains/{domain}/check", post(check))
        .route("/console/domains/{domain}/delete", post(delete))
}

struct RecordRow {
    kind: &'static str,
    name: String,
    value: String,
    priority: String,
    purpose: &'static str,
    required: bool,
    state: &'static str,
    mark: &'static str,
}

struct DomainCard {
    id: String,
    name: String,
    state: &'static str,
    mark: &'static str,
    fault: String,
    changed: When,
    records: Vec<RecordRow>,
    waits: bool,
    /// Whether the person may change it.
    admin: bool,
}

#[derive(Template)]
#[template(path = "console/domains.html")]
struct DomainsPage {
    shell: Shell,
    domains: Vec<DomainCard>,
    /// Whether the plan includes custom domains.
    included: bool,
    form: FormState,
}

#[derive(Template)]
#[template(path = "console/domain_new.html")]
struct NewPage {
    shell: Shell,
    form: FormState,
}

#[derive(Template)]
#[template(path = "console/domain_card.html")]
struct CardPart {
    domain: DomainCard,
}

impl DomainCard {
    fn question(&self) -> String {
        format!("Delete domain {}?", self.name)
    }
}

/// The purpose of a record in words.
const fn purpose_name(purpose: RecordPurpose) -> &'static str {
    match purpose {
        RecordPurpose::Ownership => "Ownership",
        RecordPurpose::Mx => "Receiving (MX)",
        RecordPurpose::Spf => "SPF",
        RecordPurpose::Dkim => "DKIM",
        RecordPurpose::Dmarc => "DMARC",
    }
}

fn card(zone: &Zone, domain: EmailDomain, admin: bool) -> DomainCard {
    let records = domain.dns_records.into_iter().map(|record| RecordRow {
        kind: record.kind.as_str(),
        name: record.name,
        value: record.value,
        priority: record.priority.map(|number| number.to_string()).unwrap_or_default(),
        purpose: purpose_name(record.purpose),
        required: record.required,
        state: record.status.as_str(),
        mark: match record.status {
            RecordStatus::Verified => "ok",
            RecordStatus::Pending => "",
            RecordStatus::Missing if !record.required => "",
            RecordStatus::Missing | RecordStatus::Mismatch => "bad",
        },
    });
    DomainCard {
        records: records.collect(),
        id: domain.id.as_str().to_owned(),
        name: domain.domain,
        state: domain.status.as_str(),
        mark: match domain.status {
            DomainStatus::Verified => "ok",
            DomainStatus::Pending => "info",
            DomainStatus::Failed => "bad",
        },
        waits: domain.status == DomainStatus::Pending,
        fault: domain.last_error.unwrap_or_default(),
        changed: zone.when(domain.updated_at),
        admin,
    }
}

async fn show(visit: &Visit) -> Result<Response> {
    let shell = visit.shell("Domains", "domains").await?;
    let (domains, included) = match visit.call(&domains::LIST) {
        Ok(call) => (domains::list(visit.app(), &call).await?, true),
        Err(refused) if refused.kind() == ErrorKind::PlanRequired => (Vec::new(), false),
        Err(refused) => return Err(refused),
    };
    let domains = domains.into_iter().map(|one| card(&shell.zone, one, shell.admin)).collect();
    html(&DomainsPage { shell, domains, included, form: FormState::default() })
}

async fn show_form(visit: &Visit, form: FormState) -> Result<Response> {
    visit.call(&domains::CREATE)?;
    html(&NewPage { shell: visit.shell("Add a domain", "domains").await?, form })
}

async fn list(visit: Visit) -> Response {
    visit.answer(show(&visit)).await
}

async fn new_page(visit: Visit) -> Response {
    visit.answer(show_form(&visit, FormState::default())).await
}

async fn create(visit: Visit, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let created = async {
        let request: NewEmailDomain = input(&json!({ "domain": fields.get("domain").trim() }))?;
        domains::create(visit.app(), &visit.call(&domains::CREATE)?, request).await
    };
    match created.await {
        Ok(created) => {
            let said = format!("{} added. Publish its DNS records, then check them here.", created.domain);
            visit.act(HERE, async { Ok((HERE.to_owned(), said)) }).await
        }
        Err(refused) => {
            let form = FormState::refused(fields, &refused, LABELS);
            visit.again(&refused, show_form(&visit, form)).await
        }
    }
}

/// Checks the published records now, and shows the result in place.
async fn check(visit: Visit, Path(domain): Path<String>) -> Response {
    visit
        .answer(async {
            let call = visit.call(&domains::VERIFY)?;
            let found = domains::verify(visit.app(), &call, domain.into()).await?;
            if !page::is_partial(&visit.headers) {
                return Ok(page::go_to(&visit.headers, HERE));
            }
            let said = match found.status {
                DomainStatus::Verified => format!("{} is verified.", found.domain),
                _ => "Some records are not published yet. DNS changes can take a while.".to_owned(),
            };
            let zone = visit.zone().await?;
            Ok(page::toast(html(&CardPart { domain: card(&zone, found, true) })?, &said))
        })
        .await
}

async fn delete(visit: Visit, Path(domain): Path<String>, request: Request) -> Response {
    let question = Question {
        title: "Delete this domain?",
        text: "Its signing keys are deleted, and its addresses stop receiving mail.",
        button: "Delete domain",
        cancel: HERE,
        typed: "",
    };
    confirmed(&visit, request, &question, |_| {
        visit.act(HERE, async {
            domains::delete(visit.app(), &visit.call(&domains::DELETE)?, domain.into()).await?;
            Ok((HERE.to_owned(), "Domain deleted.".to_owned()))
        })
    })
    .await
}
