//! The HTML of messages: sanitised, with its own pictures, as an inert document for a sandboxed frame.

use std::collections::HashMap;

use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use mail::display::{self, ImageSources, SanitizedHtml};
use model::emails::{Email, ScanStatus};
use operations::{App, Call, Error, Result, attachments};

use crate::reply;

/// Bytes of a message's own pictures that are shown in its text.
const MAX_PICTURE_BYTES: usize = 6 << 20;

/// HTML sanitised for display, on a blocking thread.
pub(super) async fn sanitise(
    body: String,
    parts: HashMap<String, String>,
    remote: bool,
) -> Result<SanitizedHtml> {
    let work = move || {
        let inline = |id: &str| parts.get(id.trim_matches(['<', '>'])).cloned();
        display::sanitize(&body, &ImageSources { remote, inline: &inline })
    };
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)
}

/// The class of a frame that text of so many lines fits in: the page cannot measure the frame.
pub(super) const fn frame_height(lines: usize) -> &'static str {
    match lines {
        0..=3 => "h1",
        4..=7 => "h2",
        8..=12 => "h3",
        13..=20 => "h4",
        21..=32 => "h5",
        _ => "h6",
    }
}

/// An inert document: no scripts, no forms, and no loads except the pictures asked for.
pub(super) fn framed(body: &str, images: bool) -> Response {
    const STYLE: &str = "html{color-scheme:light}body{margin:16px;font:14.5px/1.55 system-ui,-apple-system,\"Segoe UI\",\
        Roboto,Arial,sans-serif;color:#1b2422;background:#fff;overflow-wrap:anywhere}img{max-width:100%;height:auto}\
        a{color:#0f6b62}pre{white-space:pre-wrap}blockquote{margin:8px 0;padding-left:12px;border-left:3px solid #ccd3d0}\
        table{max-width:100%}@media(max-width:620px){table{width:100%!important}}";
    let text = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Message</title>\
         <style>{STYLE}</style></head><body>{body}</body></html>"
    );
    let sources = if images { "data: https: http:" } else { "data:" };
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src {sources}; form-action 'none'; base-uri 'none'; \
         frame-ancestors 'self'; sandbox allow-popups allow-popups-to-escape-sandbox"
    );
    let mut response = ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response();
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    response
}

/// The pictures that a message contains and refers to, as `data:` URLs by content id.
pub(super) async fn pictures(
    app: &App,
    call: &Call,
    mailbox: &str,
    mail: &Email,
    body: &str,
) -> Result<HashMap<String, String>> {
    let mut found = HashMap::new();
    if mail.scan_status == Some(ScanStatus::Flagged) || !body.to_ascii_lowercase().contains("cid:") {
        return Ok(found);
    }
    let mut left = MAX_PICTURE_BYTES;
    for file in mail.attachments.as_deref().unwrap_or_default().iter().take(50) {
        let Some(id) = file.content_id.as_deref() else { continue };
        let bytes = usize::try_from(file.size).unwrap_or(usize::MAX);
        if bytes > left || found.contains_key(id.trim_matches(['<', '>'])) {
            continue;
        }
        let email = Some(mail.id.clone());
        let file = attachments::get(app, call, mailbox, email, file.id.clone()).await?;
        let Some(kind) = reply::image_type(&file.bytes) else { continue };
        left = left.saturating_sub(file.bytes.len());
        let data = format!("data:{kind};base64,{}", STANDARD.encode(&file.bytes));
        found.insert(id.trim_matches(['<', '>']).to_owned(), data);
    }
    Ok(found)
}
