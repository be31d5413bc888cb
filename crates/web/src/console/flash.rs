//! A message for the next page, kept in a short-lived cookie.

use axum::{
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::undo::Undo;
use crate::request::cookie;

const COOKIE: &str = "flash";
/// The longest message; a cookie holds 4 KiB.
const MAX_CHARACTERS: usize = 300;

/// Whether the action succeeded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Done,
    Failed,
}

/// A message for the next page.
pub(super) struct Flash {
    pub(super) kind: &'static str,
    pub(super) text: String,
    /// How the reported action is taken back.
    pub(super) undo: Option<Undo>,
}

/// Sets a message for the next page.
pub(super) fn set(response: Response, kind: Kind, text: &str) -> Response {
    set_undoable(response, kind, text, None)
}

/// The same, with a button that takes the action back.
pub(super) fn set_undoable(mut response: Response, kind: Kind, text: &str, undo: Option<&Undo>) -> Response {
    if text.is_empty() {
        return response;
    }
    let short: String = text.chars().take(MAX_CHARACTERS).collect();
    let mark = if kind == Kind::Done { 'd' } else { 'f' };
    let encoded = utf8_percent_encode(&short, NON_ALPHANUMERIC);
    let undo = undo.map(|undo| format!("!{}", undo.to_text())).unwrap_or_default();
    let cookie = format!("{COOKIE}={mark}{encoded}{undo}; Path=/console; HttpOnly; SameSite=Lax; Max-Age=60");
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    response
}

/// The message that the previous page set.
pub(super) fn read(headers: &HeaderMap) -> Option<Flash> {
    let value = cookie(headers, COOKIE)?;
    let (kind, rest) = match value.split_at_checked(1)? {
        ("d", rest) => ("done", rest),
        ("f", rest) => ("failed", rest),
        _ => return None,
    };
    let (text, undo) = rest.split_once('!').unwrap_or((rest, ""));
    let text = percent_decode_str(text).decode_utf8().ok()?.chars().take(MAX_CHARACTERS).collect();
    Some(Flash { kind, text, undo: Undo::parse(undo) })
}

/// Clears the message.
pub(super) fn forget(response: &mut Response) {
    let cookie = HeaderValue::from_static("flash=; Path=/console; HttpOnly; SameSite=Lax; Max-Age=0");
    response.headers_mut().append(header::SET_COOKIE, cookie);
}
