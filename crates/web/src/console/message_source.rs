//! A message as received: its source on a page, and downloads of it and its attachments.

use askama::Template;
use axum::{Router, extract::Path, response::Response, routing::get};
use operations::{attachments, emails};

use super::{links::encoded, message_part, visit::Visit};
use crate::{State, reply};

/// Bytes of the source that a page shows.
const MAX_SOURCE_BYTES: usize = 200_000;

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/m/{mailbox}/e/{email}/source", get(source))
        .route("/console/m/{mailbox}/e/{email}/raw", get(raw))
        .route("/console/m/{mailbox}/e/{email}/a/{file}", get(file))
}

#[derive(Template)]
#[template(path = "console/message_source.html")]
struct SourcePart {
    base: String,
    id: String,
    text: String,
    cut: bool,
}

/// The message as received.
async fn source(visit: Visit, Path((mailbox, email)): Path<(String, String)>) -> Response {
    visit
        .answer(async {
            let call = visit.call(&emails::RAW)?;
            let (_, bytes) = emails::raw(visit.app(), &call, &mailbox, email.clone().into()).await?;
            let end = bytes.len().min(MAX_SOURCE_BYTES);
            let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let base = format!("/console/m/{}/e/{}", encoded(&mailbox), encoded(&email));
            let part = SourcePart { base, id: email, text, cut: bytes.len() > end };
            message_part::respond(&visit, &mailbox, &part.id, "Source", &part).await
        })
        .await
}

async fn raw(visit: Visit, Path((mailbox, email)): Path<(String, String)>) -> Response {
    visit
        .answer(async {
            let call = visit.call(&emails::RAW)?;
            let (filename, bytes) = emails::raw(visit.app(), &call, &mailbox, email.into()).await?;
            let media_type = "message/rfc822".to_owned();
            let download = attachments::Download { filename, media_type, bytes: bytes.into() };
            reply::download(&visit.headers, download)
        })
        .await
}

async fn file(visit: Visit, Path((mailbox, email, file)): Path<(String, String, String)>) -> Response {
    visit
        .answer(async {
            let call = visit.call(&attachments::GET_OF_EMAIL)?;
            let download =
                attachments::get(visit.app(), &call, &mailbox, Some(email.into()), file.into()).await?;
            reply::download(&visit.headers, download)
        })
        .await
}
