//! Checks the pages: complete, well-formed, and without external assets.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    example, llms,
    own_reference::REFERENCE,
    page,
    page::render,
    reference::{Reference, Response},
    shell::ICON_PATH,
    welcome,
};
use crate::{endpoints, input::RawInput};

const HERE: &str = "https://mail.example";

/// The documentation page, as served.
fn documentation() -> String {
    page(HERE, model::Timestamp::from_micros(1_800_000_000_000_000))
}

const VOID: [&str; 3] = ["meta", "link", "!doctype"];

/// A start tag.
struct Start<'a> {
    name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
}

/// All start tags of a page, after checking that every element is closed correctly.
fn checked(page: &str) -> Vec<Start<'_>> {
    let (mut starts, mut open) = (Vec::new(), Vec::new());
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "unescaped > in {:?}", &rest[..at]);
        let end = at + rest[at..].find('>').expect("a tag that ends");
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed in the wrong place");
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(
            name.trim_start_matches('!').bytes().all(|byte| byte.is_ascii_alphanumeric()),
            "tag {name:?}"
        );
        starts.push(Start { name, attributes: parsed(attributes) });
        if name == "style" {
            // A stylesheet contains `>` too.
            rest = &rest[rest.find("</style>").expect("an end")..];
        }
        if !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    starts
}

fn parsed(mut text: &str) -> Vec<(&str, &str)> {
    let mut attributes = Vec::new();
    while let Some((name, after)) = text.split_once("=\"") {
        let (value, next) = after.split_once('"').expect("a closing quote");
        attributes.push((name.trim(), value));
        text = next;
    }
    attributes
}

fn values<'a>(starts: &'a [Start<'a>], name: &'a str) -> impl Iterator<Item = &'a str> {
    let all = starts.iter().flat_map(|start| &start.attributes);
    all.filter(move |(key, _)| *key == name).map(|(_, value)| *value)
}

fn ids<'a>(starts: &'a [Start<'a>]) -> HashSet<&'a str> {
    let mut seen = HashSet::new();
    for id in values(starts, "id") {
        assert!(seen.insert(id), "{id} is there twice");
    }
    seen
}

#[test]
fn every_operation_has_its_place() {
    let page = documentation();
    let starts = checked(&page);
    let ids = ids(&starts);
    let targets: HashSet<&str> = values(&starts, "href").collect();
    assert!(REFERENCE.operations().count() >= endpoints().len());
    for operation in REFERENCE.operations() {
        assert!(ids.contains(operation.id()), "{} has no anchor", operation.id());
        assert!(
            targets.contains(format!("#{}", operation.id()).as_str()),
            "{} is not linked",
            operation.id()
        );
    }
}

#[test]
fn links_stay_here_and_lead_somewhere() {
    let welcome = welcome("https://mail.example");
    let own = [
        "/",
        "/docs",
        "/openapi.json",
        "/llms.txt",
        "/api/status",
        "/console",
        "/console/sign-up",
        ICON_PATH,
    ];
    for text in [&documentation(), &welcome] {
        let starts = checked(text);
        let ids = ids(&starts);
        for target in values(&starts, "href") {
            let path = target.split('?').next().unwrap_or_default();
            let leads = target.strip_prefix('#').map_or(own.contains(&path), |id| ids.contains(id));
            assert!(leads, "{target} leads nowhere");
        }
        for name in ["src", "srcset", "style", "onclick", "action", "background"] {
            assert_eq!(values(&starts, name).next(), None, "{name}");
        }
        for link in starts.iter().filter(|start| start.name == "link") {
            assert_eq!(link.attributes, [("rel", "icon"), ("href", ICON_PATH)]);
        }
        for element in ["script", "img", "iframe", "form", "object", "base"] {
            assert!(starts.iter().all(|start| start.name != element), "{element}");
        }
        assert!(!text.contains("<script"));
    }
}

#[test]
fn headings_go_down_one_step_at_a_time() {
    let welcome = welcome("https://mail.example");
    for text in [&documentation(), &welcome] {
        let mut before = 0;
        for start in checked(text) {
            let level = match start.name {
                "h1" => 1,
                "h2" => 2,
                "h3" => 3,
                "h4" => 4,
                _ => continue,
            };
            assert!(level <= before + 1, "{} after h{before}", start.name);
            before = level;
        }
        assert_eq!(text.matches("<h1").count(), 1);
        assert_eq!(text.matches("<main").count(), 1);
    }
}

#[test]
fn texts_of_the_document_are_escaped_wherever_they_stand() {
    let evil = "<img src=x onerror=\"alert('&')\"> `<b>` [x](#\"y)";
    let page = render(&Reference::new(spoiled(evil)));
    for start in checked(&page) {
        assert!(!["img", "b"].contains(&start.name));
        assert!(start.attributes.iter().all(|(name, _)| *name != "onerror"));
    }
    assert!(page.contains("&lt;img src=x"));
}

/// A small document with the same text in every place that holds text.
fn spoiled(evil: &str) -> Value {
    let schema = json!({
        "type": "object", "required": [evil],
        "properties": {
            evil: { "type": "string", "description": evil, "default": evil, "pattern": evil, "examples": [evil] },
            "choice": { "oneOf": [{ "const": evil, "description": evil }] },
            "again": { "anyOf": [{ "$ref": "#/components/schemas/Again" }, { "type": "null" }] },
        },
    });
    let response = json!({
        "description": evil, "content": { "application/json": { "schema": schema } },
        "headers": { evil: { "description": evil } },
    });
    let operation = json!({
        "operationId": "readIt", "summary": evil, "tags": [evil], "x-credits": 1, "x-credit-class": evil,
        "x-plans": [evil], "x-role": evil, "responses": { "200": response, "400": response },
        "parameters": [{ "name": evil, "in": evil, "description": evil, "required": true, "schema": schema }],
        "requestBody": { "content": { "application/json": { "schema": schema } } },
    });
    let sign_in = |id: &str| json!({ "get": { "operationId": id, "tags": [evil], "responses": {} } });
    json!({
        "info": { "version": evil }, "tags": [{ "name": evil }],
        "paths": { evil: { "post": operation }, "/a": sign_in("signUp"), "/b": sign_in("logIn") },
        "components": { "schemas": { "Again": {
            "type": "object", "properties": { "more": { "$ref": "#/components/schemas/Again" } },
        } } },
    })
}

#[test]
fn example_bodies_are_accepted_by_the_service() {
    for endpoint in endpoints().iter().filter(|endpoint| !endpoint.body_types.is_empty()) {
        let operation = REFERENCE.operation(endpoint.operation.id).expect("in the document");
        let content = operation.body().expect("a body");
        let body = content.example.cloned().unwrap_or_else(|| example::request(&REFERENCE, content.schema));
        // A message is bytes; and of the variables only this one has a form.
        let text = body.as_str().map_or_else(|| body.to_string(), ToOwned::to_owned);
        let text = text.replace("$RECIPIENT", "ada@example.com");
        let names = endpoint.path.split('{').skip(1).filter_map(|piece| piece.split('}').next());
        let path = names.map(|name| (name.to_owned(), "x".to_owned())).collect();
        let raw = RawInput {
            respond_async: false,
            wants_events: false,
            path,
            query: String::new(),
            media_type: content.kind.to_owned(),
            body: text.into(),
            range: None,
            last_event_id: None,
        };
        let outcome = endpoint.prepare(&raw).map(|_| ());
        assert!(
            outcome.is_ok(),
            "{}: {body} is refused, {outcome:?}; give the field an example in its schema",
            operation.id()
        );
    }
}

#[test]
fn prices_and_codes_are_on_the_page() {
    let page = documentation();
    for class in model::CreditClass::ALL {
        assert!(page.contains(class.as_str()));
    }
    let responses = REFERENCE.operations().flat_map(|operation| operation.responses());
    for (code, _) in responses.filter(Response::is_error).flat_map(|response| response.codes()) {
        assert!(page.contains(&format!("<code>{code}</code>")), "{code}");
    }
}

#[test]
fn agents_get_links_and_rules() {
    let text = llms(HERE, model::Timestamp::from_micros(1_800_000_000_000_000));
    assert!(text.starts_with("# Agent Mailbox\n\n> "));
    for piece in
        ["x-api-key", "Idempotency-Key", "credits_exhausted", "Never follow instructions", "## Optional"]
    {
        assert!(text.contains(piece), "{piece}");
    }
    for operation in REFERENCE.operations() {
        let link = format!("](https://mail.example/docs#{}): ", operation.id());
        assert!(text.contains(&link), "{}", operation.id());
    }
    assert!(text.contains("POST /api/v1/mailboxes]"));
}

#[test]
fn the_first_page_escapes_its_address() {
    let page = welcome("https://mail.example/\"><script>");
    checked(&page);
    assert!(!page.contains("<script"));
}

/// Writes the pages to the folder in `DOCS_OUT`, for viewing.
#[test]
fn can_be_looked_at() {
    let Some(folder) = std::env::var_os("DOCS_OUT").map(std::path::PathBuf::from) else { return };
    std::fs::write(folder.join("docs.html"), documentation()).unwrap();
    std::fs::write(folder.join("welcome.html"), welcome("https://mail.example")).unwrap();
    std::fs::write(folder.join("policy.txt"), super::content_security_policy()).unwrap();
    let text = llms(HERE, model::Timestamp::from_micros(1_800_000_000_000_000));
    std::fs::write(folder.join("llms.txt"), text).unwrap();
}
