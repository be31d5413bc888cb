//! The form of a message being written: its fields, its attachments, and the pictures in its text.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use axum::{
    extract::{FromRequest as _, Multipart, Request},
    http::StatusCode,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use mail::{
    display::{self, ImageSources},
    safe_text::SafeText,
};
use operations::{Error, ErrorKind, Result};
use serde_json::{Value, json};

use super::{fields::Fields, visit::Visit};

/// A form with its attachments.
pub(super) struct Form {
    pub(super) fields: Fields,
    /// New attachments, as the API takes them.
    pub(super) files: Vec<Value>,
}

/// Reads a multipart form.
pub(super) async fn read_form(visit: &Visit, request: Request) -> Result<Form> {
    let wrong = |_| Error::new(ErrorKind::UnsupportedMediaType).with_fix("Send the form with its files.");
    let mut parts = Multipart::from_request(request, &visit.state).await.map_err(wrong)?;
    let (mut fields, mut files) = (Fields::default(), Vec::new());
    let broken = |error: axum::extract::multipart::MultipartError| {
        if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
            Error::new(ErrorKind::AttachmentsTooLarge)
        } else {
            Error::invalid("", "the form ended early or is malformed")
        }
    };
    let mut count = 0;
    while let Some(part) = parts.next_field().await.map_err(broken)? {
        count += 1;
        if count > 200 {
            return Err(Error::invalid("", "the form has too many parts"));
        }
        let name = part.name().unwrap_or_default().to_owned();
        if let Some(file_name) = part.file_name().map(ToOwned::to_owned) {
            let kind = part.content_type().unwrap_or("application/octet-stream").to_owned();
            let bytes = part.bytes().await.map_err(broken)?;
            if !file_name.is_empty() {
                files
                    .push(json!({ "content": STANDARD.encode(&bytes), "filename": file_name, "type": kind }));
            }
        } else {
            let text = part.text().await.map_err(broken)?;
            fields.push(name, text.replace('\0', ""));
        }
    }
    Ok(Form { fields, files })
}

/// The text of a form: HTML with its pictures extracted, or plain text when nothing in it needs HTML.
pub(super) fn body_text(fields: &Fields) -> (String, &'static str, Vec<Value>) {
    let Some(editor) = fields.given("html") else {
        return (fields.get("text").replace("\r\n", "\n"), "text", Vec::new());
    };
    let clean = display::sanitize(editor, &ImageSources { remote: true, inline: &|_| None }).html;
    let formatted = ["<b>", "<strong", "<i>", "<em", "<a ", "<ul", "<ol", "<img", "<blockquote", "<h", "<u>"];
    if !formatted.iter().any(|tag| clean.contains(tag)) {
        return (SafeText::from_html(&clean).into_string(), "text", Vec::new());
    }
    let is_forward = fields.get("mode") == "forward" || fields.ticked("below");
    let (html, pictures) = extract_pictures(&clean, is_forward);
    (html, "html", pictures)
}

/// Extracts pictures that are `data:` URLs in HTML as inline attachments. Next to an original, which may have been
/// written here too, their names say what they are.
fn extract_pictures(html: &str, beside_original: bool) -> (String, Vec<Value>) {
    let (mut out, mut files, mut rest) = (String::with_capacity(html.len()), Vec::new(), html);
    while let Some(at) = rest.find("src=\"data:image/") {
        let (before, from) = rest.split_at(at + "src=\"".len());
        out.push_str(before);
        let end = from.find('"').unwrap_or(from.len());
        let (address, after) = from.split_at(end);
        rest = after;
        let Some((kind, content)) =
            address.strip_prefix("data:").and_then(|data| data.split_once(";base64,"))
        else {
            continue;
        };
        let number = files.len() + 1;
        let ending = kind.rsplit('/').next().unwrap_or("png");
        let mut id = format!("image{number}.console");
        if beside_original {
            let mut hasher = DefaultHasher::new();
            content.hash(&mut hasher);
            id = format!("image{number}.{:x}.console", hasher.finish());
        }
        out.push_str("cid:");
        out.push_str(&id);
        files.push(json!({
            "content": content, "filename": format!("image-{number}.{ending}"), "type": kind,
            "disposition": "inline", "contentId": id,
        }));
    }
    out.push_str(rest);
    (out, files)
}

/// A body and its attachments, as operations take them.
pub(super) struct Parts {
    pub(super) body: String,
    pub(super) format: &'static str,
    pub(super) files: Vec<Value>,
}

/// The form's own body and attachments.
pub(super) fn parts(form: &Form) -> Parts {
    let (body, format, pictures) = body_text(&form.fields);
    let existing = form.fields.all("keep").into_iter().map(|id| json!({ "attachment_id": id }));
    let files = existing.chain(form.files.iter().cloned()).chain(pictures).collect();
    Parts { body, format, files }
}

#[cfg(test)]
mod tests {
    use mail::compose::quote::reply_subject;

    use super::*;

    #[test]
    fn pictures_in_the_text_become_files() {
        let html =
            "<p>a</p><img src=\"data:image/png;base64,AAAA\" alt=\"x\"><img src=\"https://x.test/y.png\">";
        let (out, files) = extract_pictures(html, false);
        assert!(out.contains("src=\"cid:image1.console\"") && out.contains("https://x.test/y.png"), "{out}");
        assert_eq!(files.len(), 1);
        assert_eq!(files[0]["type"], "image/png");
    }

    #[test]
    fn what_needs_no_html_is_text() {
        let mut fields = Fields::default();
        fields.push("html".into(), "<div>Hello</div><div>there</div>".into());
        assert_eq!(body_text(&fields).1, "text");
        let mut fields = Fields::default();
        fields.push("html".into(), "<div><b>Hello</b> <script>x</script></div>".into());
        let (body, format, _) = body_text(&fields);
        assert_eq!(format, "html");
        assert!(!body.contains("script"), "{body}");
        assert_eq!(reply_subject("re: x"), "re: x");
        assert_eq!(reply_subject("x"), "Re: x");
    }
}
