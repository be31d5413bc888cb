//! The question before something is destroyed. With JavaScript it is a dialog, which adds the field `confirmed`; without, the
//! server answers the form with a page that asks, and that sends the same fields again.

use askama::Template;
use axum::{extract::Request, response::Response};
use operations::Error;

use super::{
    fields::Fields,
    page::{self, Head, html},
    visit::Visit,
};

/// The fields that a question uses itself; they are not repeated on its page.
const OWN_FIELDS: [&str; 5] = ["confirmed", "confirm_title", "confirm_text", "confirm_button", "typed"];
/// The longest text that a form may bring along for its question.
const MAX_CHARACTERS: usize = 500;

/// What is asked. A form made with the macro `ui::confirm` brings its own words, with the name of its object; they replace
/// the title, text and button given here.
pub(super) struct Question<'a> {
    /// Verb and object: "Delete this draft?"
    pub(super) title: &'a str,
    /// What happens then.
    pub(super) text: &'a str,
    /// The button: "Delete draft".
    pub(super) button: &'a str,
    /// Where *Cancel* leads.
    pub(super) cancel: &'a str,
    /// What has to be typed first; empty for most.
    pub(super) typed: &'a str,
}

#[derive(Template)]
#[template(path = "console/confirm.html")]
struct ConfirmPage {
    head: Head,
    action: String,
    title: String,
    text: String,
    button: String,
    cancel: String,
    typed: String,
    /// Whether something else was typed.
    mistyped: bool,
    fields: Vec<(String, String)>,
}

/// Reads a destructive form and runs its action; asks first, unless the person has confirmed.
pub(super) async fn confirmed<W: Future<Output = Response>>(
    visit: &Visit,
    request: Request,
    question: &Question<'_>,
    action: impl FnOnce(Fields) -> W,
) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    match ask(visit, &fields, question) {
        Some(asked) => asked,
        None => action(fields).await,
    }
}

/// The page that asks, unless the person has confirmed; for handlers that have read the form already.
pub(super) fn ask(visit: &Visit, fields: &Fields, question: &Question<'_>) -> Option<Response> {
    let typed = fields.get("typed").trim();
    let is_right = question.typed.is_empty() || typed == question.typed;
    if fields.ticked("confirmed") && is_right {
        return None;
    }
    if page::is_partial(&visit.headers) {
        let refused = Error::invalid("confirmed", "confirm this first");
        return Some(page::failure(&visit.headers, &refused));
    }
    let words = |name: &str, otherwise: &str| -> String {
        fields.given(name).unwrap_or(otherwise).chars().take(MAX_CHARACTERS).collect()
    };
    let title = words("confirm_title", question.title);
    let asked = ConfirmPage {
        head: Head::new(&visit.headers, &title),
        action: visit.path().to_owned(),
        text: words("confirm_text", question.text),
        button: words("confirm_button", question.button),
        cancel: question.cancel.to_owned(),
        typed: question.typed.to_owned(),
        mistyped: fields.ticked("confirmed"),
        fields: fields
            .pairs()
            .filter(|(name, _)| !OWN_FIELDS.contains(name))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        title,
    };
    Some(html(&asked).unwrap_or_else(|refused| page::failure(&visit.headers, &refused)))
}
