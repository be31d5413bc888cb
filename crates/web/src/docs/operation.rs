//! One operation on the documentation page: its description, inputs, responses and examples.

use model::Plan;
use serde_json::Value;

use super::{
    example,
    html::Html,
    reference::{Access, Operation, Reference, Response, text},
    samples,
    schema::{self, Field},
    tables::{error_rows, error_table, table},
};

/// Responses with at most this many fields are shown; longer ones are folded.
const MAX_UNFOLDED_FIELDS: usize = 8;
/// Response examples with more lines than this scroll.
const MAX_UNSCROLLED_LINES: usize = 20;

/// The article of an operation.
pub(super) fn article(html: &mut Html, reference: &Reference, operation: &Operation<'_>) {
    let id = operation.id();
    let heading = format!("{id}-title");
    html.put_with("article.operation", &[("id", id), ("aria-labelledby", &heading)], |html| {
        html.put_with("h3", &[("id", &heading)], |html| {
            html.link("a", &format!("#{id}"), &operation.title());
        });
        route(html, operation);
        html.marked_line("p.summary", operation.summary());
        facts(html, operation);
        html.put("div.columns", |html| {
            html.put("div.details", |html| {
                parameters(html, reference, operation);
                body(html, reference, operation);
                answers(html, reference, operation);
                errors(html, operation);
            });
            html.put("div.samples", |html| examples(html, reference, operation));
        });
    });
}

/// The badge of a method.
pub(super) fn badge(html: &mut Html, method: &str) {
    html.line(&format!("span.method.{method}"), &method.to_ascii_uppercase());
}

fn route(html: &mut Html, operation: &Operation<'_>) {
    html.put("p.route", |html| {
        badge(html, operation.method);
        html.text(" ");
        html.put("code", |html| {
            for piece in operation.path.split_inclusive('/') {
                let name = piece.trim_end_matches('/');
                if name.starts_with('{') {
                    html.line("var", name);
                    html.text(&piece[name.len()..]);
                } else {
                    html.text(piece);
                }
            }
        });
    });
}

fn facts(html: &mut Html, operation: &Operation<'_>) {
    let fact = |html: &mut Html, class: &str, name: &str, value: &str| {
        html.put(&format!("div{class}"), |html| {
            html.line("dt", name);
            html.line("dd", value);
        });
    };
    html.put("dl.facts", |html| {
        match operation.credits() {
            Some(credits) => {
                fact(html, "", "Credits", &format!("{credits} ({})", operation.class().replace('_', " ")));
            }
            None => fact(html, "", "Credits", "not metered"),
        }
        let plans = operation.plans();
        if plans.len() == Plan::ALL.len() {
            fact(html, "", "Plans", "all");
        } else if !plans.is_empty() {
            fact(html, ".special", "Plans", &plans.join(", "));
        }
        match operation.role() {
            "" => {}
            "member" => fact(html, "", "Role", "any"),
            role => fact(html, ".special", "Role", role),
        }
        if let (Access::Key, Some(scopes)) = (operation.access(), operation.scopes()) {
            let named = if scopes.is_empty() { "none".to_owned() } else { scopes.join(" or ") };
            let whole = if operation.concerns_workspace() { ", all mailboxes" } else { "" };
            fact(html, "", "Scope", &format!("{named}{whole}"));
        }
        match operation.access() {
            Access::Key => {}
            Access::Session => fact(html, ".special", "Access", "console session only"),
            Access::Anyone => fact(html, "", "Access", "no credential needed"),
        }
    });
}

fn parameters(html: &mut Html, reference: &Reference, operation: &Operation<'_>) {
    if operation.parameters().is_empty() {
        return;
    }
    html.line("h4", "Parameters");
    table(html, &["Name", "In", "Description"], |html| {
        for parameter in operation.parameters() {
            html.put("tr", |html| parameter_row(html, reference, parameter));
        }
    });
}

fn parameter_row(html: &mut Html, reference: &Reference, parameter: &Value) {
    let required = parameter["required"] == true;
    let mut field = schema::field(reference, text(parameter, "name"), &parameter["schema"], required, 0);
    text(parameter, "description").clone_into(&mut field.description);
    html.put_with("th", &[("scope", "row")], |html| {
        html.line("code.name", &field.name);
        if required {
            html.text(" ");
            html.line("span.must", "required");
        }
    });
    html.line("td", text(parameter, "in"));
    html.put("td", |html| {
        kind(html, &field, true);
        notes(html, &field);
    });
}

fn body(html: &mut Html, reference: &Reference, operation: &Operation<'_>) {
    let Some(content) = operation.body() else { return };
    html.line("h4", "Body");
    if content.kind != "application/json" {
        html.marked_line("p", &format!("The bytes, as `{}`.", content.kind));
        return;
    }
    fields(html, &schema::fields(reference, content.schema), "required");
}

fn answers(html: &mut Html, reference: &Reference, operation: &Operation<'_>) {
    html.line("h4", "Response");
    for response in operation.responses().iter().filter(|response| !response.is_error()) {
        let found =
            response.content.map(|content| schema::fields(reference, content.schema)).unwrap_or_default();
        if found.is_empty() {
            html.put("p.status", |html| status_line(html, reference, response));
            continue;
        }
        let open: &[(&str, &str)] = if count(&found) <= MAX_UNFOLDED_FIELDS { &[("open", "")] } else { &[] };
        html.put_with("details.answer", open, |html| {
            html.put("summary", |html| status_line(html, reference, response));
            fields(html, &found, "optional");
        });
    }
}

fn status_line(html: &mut Html, reference: &Reference, response: &Response<'_>) {
    html.line("span.code.fine", response.status);
    html.text(" ");
    html.marked(response.description);
    let Some(content) = response.content else { return };
    let kind = if content.kind == "application/json" {
        schema::Shape::of(reference, content.schema).kind(reference)
    } else {
        content.kind.to_owned()
    };
    html.text(" ");
    html.line("span.kind", &kind);
}

fn errors(html: &mut Html, operation: &Operation<'_>) {
    let responses = operation.responses();
    let failures: Vec<_> = responses.iter().filter(|response| response.is_error()).collect();
    if failures.is_empty() {
        return;
    }
    html.line("h4", "Errors");
    html.put("details.errors", |html| {
        html.put("summary", |html| {
            for response in &failures {
                html.line("span.code", response.status);
                html.text(" ");
            }
        });
        error_table(html, failures.iter().flat_map(|response| error_rows(response)));
    });
}

fn examples(html: &mut Html, reference: &Reference, operation: &Operation<'_>) {
    html.put_with("div.languages", &[("role", "group"), ("aria-label", "Request")], |html| {
        let group = format!("{}-code", operation.id());
        for (index, (language, label, code)) in samples::all(reference, operation).iter().enumerate() {
            // Of those with one name, a browser shows one at a time.
            let attributes = [("name", group.as_str()), ("open", "")];
            let attributes = if index == 0 { &attributes[..] } else { &attributes[..1] };
            html.put_with("details", attributes, |html| {
                html.line("summary", label);
                html.code_of(language, code);
            });
        }
    });
    let responses = operation.responses();
    let answer = responses.iter().find(|response| !response.is_error());
    if let Some((response, content)) = answer.and_then(|response| Some((response, response.content?)))
        && content.kind == "application/json"
    {
        html.put("figure", |html| {
            html.line("figcaption", &format!("Response {}", response.status));
            let value = example::answer(reference, content.schema);
            if serde_json::to_string_pretty(&value)
                .is_ok_and(|text| text.lines().count() > MAX_UNSCROLLED_LINES)
            {
                let label = format!("Response of {}", operation.title());
                html.scrolling_code_block(&label, |html| html.json(&value, 0));
            } else {
                html.code_block(|html| html.json(&value, 0));
            }
        });
    }
}

/// A list of fields. `mark` says which are marked: "required" in requests, "optional" in responses.
pub(super) fn fields(html: &mut Html, list: &[Field], mark: &str) {
    html.put("ul.fields", |html| {
        for field in list {
            html.put("li", |html| {
                html.line("code.name", &field.name);
                html.text(" ");
                kind(html, field, mark == "required");
                if field.required == (mark == "required") {
                    html.text(" ");
                    html.line(if field.required { "span.must" } else { "span.may" }, mark);
                }
                notes(html, field);
                inside(html, &field.inside, mark);
            });
        }
    });
}

/// The fields of a nested object. Many of them would hide what follows, so they are folded.
fn inside(html: &mut Html, list: &[Field], mark: &str) {
    match count(list) {
        0 => {}
        1..=MAX_UNFOLDED_FIELDS => fields(html, list, mark),
        _ => html.put("details.inside", |html| {
            html.line("summary", &format!("{} fields inside", list.len()));
            fields(html, list, mark);
        }),
    }
}

/// The type of a field with its bounds, and in requests its default.
fn kind(html: &mut Html, field: &Field, with_default: bool) {
    html.put("span.kind", |html| {
        html.text(&field.kind);
        for bound in &field.bounds {
            html.text(" · ");
            html.text(bound);
        }
        let default = field.default.as_ref().filter(|_| with_default);
        for (words, value) in [("matches", field.pattern.as_ref()), ("default", default)] {
            if let Some(value) = value {
                html.text(&format!(" · {words} "));
                html.line("code", value);
            }
        }
    });
}

/// The description of a field, and its choices.
fn notes(html: &mut Html, field: &Field) {
    if !field.description.is_empty() {
        html.marked_line("p.note", &field.description);
    }
    if !field.choices.is_empty() {
        choices(html, &field.choices);
    }
}

/// The allowed values.
pub(super) fn choices(html: &mut Html, list: &[(String, String)]) {
    html.put("ul.choices", |html| {
        for (value, meaning) in list {
            html.put("li", |html| {
                html.line("code", value);
                html.text(" ");
                html.marked(meaning);
            });
        }
    });
}

fn count(fields: &[Field]) -> usize {
    fields.iter().map(|field| 1 + count(&field.inside)).sum()
}
