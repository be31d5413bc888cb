//! Pages: their head, how one becomes a response, and error pages.

use std::fmt::Write as _;

use askama::Template;
use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use operations::{Detail, Error, ErrorKind, Result};

use super::{assets, flash};
use crate::{error, request::cookie};

/// The content security policy: files of this server, and pictures that are part of the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The head of a page.
pub(super) struct Head {
    pub(super) title: String,
    pub(super) theme: &'static str,
}

impl Head {
    pub(super) fn new(headers: &HeaderMap, title: &str) -> Self {
        let theme = match cookie(headers, "theme") {
            Some("light") => "light",
            Some("dark") => "dark",
            _ => "auto",
        };
        Self { title: title.to_owned(), theme }
    }

    /// The URL of a static file.
    #[expect(clippy::unused_self, reason = "templates reach functions by way of values")]
    pub(super) fn asset(&self, name: &str) -> &'static str {
        assets::url(name)
    }
}

/// A page as a response.
pub(super) fn html(page: &impl Template) -> Result<Response> {
    let text = page.render().map_err(Error::internal)?;
    Ok(document(StatusCode::OK, text))
}

/// HTML as a response, under the policy of pages.
pub(super) fn document(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

/// Whether the script asked for a part of a page.
pub(super) fn is_partial(headers: &HeaderMap) -> bool {
    headers.contains_key("hx-request") && !headers.contains_key("hx-history-restore-request")
}

/// Redirects to another page of the console.
pub(super) fn go_to(headers: &HeaderMap, target: &str) -> Response {
    let name = if is_partial(headers) { "hx-redirect" } else { "location" };
    let status = if is_partial(headers) { StatusCode::OK } else { StatusCode::SEE_OTHER };
    with_header(status.into_response(), name, target)
}

/// An error in a sentence or two for people.
pub(super) fn explain(refused: &Error) -> String {
    let mut text = match refused.kind() {
        ErrorKind::ValidationFailed if !refused.details().is_empty() => String::new(),
        // Unless the error is not about the role and says so.
        kind @ ErrorKind::RoleRequired if refused.message() == kind.message() => {
            "Your role does not allow this.".to_owned()
        }
        ErrorKind::PlanRequired => "The workspace’s plan does not include this.".to_owned(),
        ErrorKind::CrossSiteRequest => "This request came from another site.".to_owned(),
        ErrorKind::Internal => "Something went wrong on our side. Please try again.".to_owned(),
        _ => format!("{}.", refused.message().trim_end_matches('.')),
    };
    for detail in refused.details() {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&explain_detail(detail));
    }
    if let Some(fix) = refused.fix().filter(|_| refused.kind() != ErrorKind::CrossSiteRequest) {
        text.push(' ');
        text.push_str(fix);
    }
    text
}

/// What is wrong with one input, with its name.
pub(super) fn explain_detail(detail: &Detail) -> String {
    let field = detail.path.replace(['_', '.'], " ");
    format!("{}: {}.", capital(&field), phrase(&detail.message))
}

/// A message about an input as a sentence of its own.
pub(super) fn sentence(message: &str) -> String {
    format!("{}.", capital(&phrase(message)))
}

/// A message about an input in plain words, to follow its name.
pub(super) fn phrase(message: &str) -> String {
    let length = |prefix: &str| message.strip_prefix(prefix).map(str::to_owned);
    if let Some(most) = length("length is greater than ") {
        format!("use at most {most} characters")
    } else if let Some(least) = length("length is lower than ") {
        if least == "1" { "must not be empty".to_owned() } else { format!("use at least {least} characters") }
    } else {
        message.trim_end_matches('.').to_owned()
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => "Request".to_owned(),
    }
}

#[derive(Template)]
#[template(path = "console/error.html")]
struct ErrorPage {
    head: Head,
    status: u16,
    heading: &'static str,
    said: String,
    code: &'static str,
}

/// An error: as a page, or as a toast on the open page.
pub(super) fn failure(headers: &HeaderMap, refused: &Error) -> Response {
    let status = error::status(refused.kind());
    if status.is_server_error() {
        tracing::error!(code = refused.kind().code(), error = %refused, "page failed");
    }
    let said = explain(refused);
    if is_partial(headers) {
        let note = serde_json::json!({ "toast": { "kind": "failed", "text": said } });
        let response = with_header(StatusCode::OK.into_response(), "hx-reswap", "none");
        // Header values are ASCII; other characters are written as JSON escapes.
        return with_header(response, "hx-trigger", &ascii_json(&note));
    }
    let heading = match status.as_u16() {
        401 => "Please log in",
        402 => "No credits left",
        403 => "Not allowed",
        404 => "Not found",
        429 => "Too many requests",
        500..=599 => "Something went wrong",
        _ => "That did not work",
    };
    let head = Head::new(headers, heading);
    let page = ErrorPage { head, status: status.as_u16(), heading, said, code: refused.kind().code() };
    let mut response = document(status, page.render().unwrap_or_default());
    if let Some(seconds) = refused.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// JSON in ASCII only, for a header.
pub(super) fn ascii_json(value: &serde_json::Value) -> String {
    let mut text = String::new();
    for character in value.to_string().chars() {
        if character.is_ascii() {
            text.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

/// A toast on the open page.
pub(super) fn toast(response: Response, said: &str) -> Response {
    let note = serde_json::json!({ "toast": { "kind": "done", "text": said } });
    with_header(response, "hx-trigger", &ascii_json(&note))
}

/// A response without content.
pub(super) fn nothing() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// Adds a header with a value of our own.
pub(super) fn with_header(mut response: Response, name: &'static str, value: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Clears the flash message once a page has shown it.
pub(super) async fn finish(request: Request, next: Next) -> Response {
    let partial = is_partial(request.headers()) || request.uri().path().ends_with("/frame");
    let had_flash = flash::read(request.headers()).is_some() && !partial;
    let mut response = next.run(request).await;
    let headers = response.headers();
    let is_page =
        headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let sets = headers.get_all(header::SET_COOKIE).iter().any(|one| one.as_bytes().starts_with(b"flash="));
    if had_flash && is_page && !sets {
        flash::forget(&mut response);
    }
    response
}
