//! What the contents of an outgoing message hold: secrets and personal data, and files. Searched before the transaction that
//! queues it; the gate of send policies then only compares.
//!
//! Nothing of a value leaves this file but its mask. A search that fails or takes too long finds nothing out, and the gate
//! asks a person.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use leaks::{Kind, Search};
use mail::safe_text::SafeText;
use model::{
    knowledge::DocumentType,
    reviews::{FindingKind, ReviewFinding},
};
use tokio::sync::Semaphore;

use super::{
    gate::{ContentScan, Gate},
    origin::Origin,
    outgoing_message::OutgoingMessage,
};
use crate::{
    core::{app::App, compute::caught, error::Result},
    inbox::extract,
};

/// How long a search takes at most, unless the configuration says otherwise.
const SCAN_TIMEOUT: Duration = Duration::from_millis(100);
/// Searches at the same time. One that took too long still counts until it ends.
const MAX_CONCURRENT_SCANS: usize = 4;
/// Text of one message that is searched. One with more is not searched, but reviewed.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// Findings of one message; a reviewer needs no more.
const MAX_FINDINGS: usize = 100;

static SCANS: Semaphore = Semaphore::const_new(MAX_CONCURRENT_SCANS);

/// Searches a message if a policy of its mailbox asks for that. Its digest is set once it is known.
pub(crate) async fn scan(
    app: &App,
    origin: &Origin,
    outgoing: &OutgoingMessage,
) -> Result<Option<ContentScan>> {
    if !origin.has_policies && !app.settings().send_policy.floor.scan.is_on() {
        return Ok(None);
    }
    let (app_, mailbox) = (app.clone(), origin.mailbox.id.clone());
    let load = async move |tx: &mut store::Tx| Gate::load(tx, &app_, &mailbox).await;
    let gate = app.db().read(&origin.workspace, load).await?;
    if !gate.scans() {
        return Ok(None);
    }
    let timeout = app.settings().send_policy.scan_timeout.unwrap_or(SCAN_TIMEOUT);
    let findings = tokio::time::timeout(timeout, search(outgoing)).await.unwrap_or_default();
    if findings.is_none() {
        tracing::warn!(mailbox = %origin.mailbox.id, "contents not searched; asking for a review");
    }
    Ok(Some(ContentScan { versions: gate.versions(), digest: String::new(), findings }))
}

async fn search(outgoing: &OutgoingMessage) -> Option<Vec<ReviewFinding>> {
    let slot = SCANS.acquire().await.ok()?;
    let outgoing = Arc::new(outgoing.clone());
    let work = move || {
        // Kept until the work ends, also when nobody waits for it any more.
        let _slot = slot;
        caught(|| findings(&outgoing)).ok().flatten()
    };
    tokio::task::spawn_blocking(work).await.ok().flatten()
}

/// A text of the message, and where it is.
struct Passage {
    place: String,
    text: String,
}

fn findings(outgoing: &OutgoingMessage) -> Option<Vec<ReviewFinding>> {
    let (passages, mut found) = passages(outgoing)?;
    let search = Search { secrets: true, personal: true };
    for Passage { place, text } in passages {
        for one in leaks::find(&text, search) {
            let kind = match one.kind {
                Kind::Secret => FindingKind::Secret,
                Kind::Personal => FindingKind::Personal,
            };
            let masked = format!("{}: {}", one.name.replace('_', " "), one.masked);
            let finding = ReviewFinding { kind, place: place.clone(), masked };
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    found.truncate(MAX_FINDINGS);
    Some(found)
}

/// The texts of a message, and a finding for each of its files; nothing if there is too much text.
fn passages(outgoing: &OutgoingMessage) -> Option<(Vec<Passage>, Vec<ReviewFinding>)> {
    let passage = |place: &str, text: String| Passage { place: place.to_owned(), text };
    let mut all = vec![passage("subject", outgoing.subject.clone())];
    all.extend(outgoing.text.iter().map(|text| passage("text", text.clone())));
    if let Some(html) = &outgoing.html {
        all.push(passage("html", SafeText::from_html(html).into_string()));
        // What is not shown leaves as well.
        all.push(passage("html", html.clone()));
    }
    let mut files = Vec::new();
    for (index, attachment) in outgoing.attachments.iter().enumerate() {
        let (place, file) = (format!("attachments[{index}]"), &attachment.file);
        let masked = SafeText::line(&file.filename).into_string();
        files.push(ReviewFinding { kind: FindingKind::Attachment, place: place.clone(), masked });
        all.push(passage(&format!("{place}.filename"), file.filename.clone()));
        if let Some(text) = file_text(&file.media_type, &file.filename, &file.bytes) {
            all.push(passage(&place, text));
        }
    }
    let bytes: usize = all.iter().map(|one| one.text.len()).sum();
    (bytes <= MAX_TEXT_BYTES).then_some((all, files))
}

/// The text of a file that can be read; others have no finding by content.
fn file_text(media_type: &str, name: &str, bytes: &Bytes) -> Option<String> {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    let kind = match (media_type, ending.as_str()) {
        ("application/pdf", _) | (_, "pdf") => DocumentType::Pdf,
        ("text/html", _) | (_, "html" | "htm") => DocumentType::Html,
        ("message/rfc822", _) | (_, "eml") => DocumentType::Eml,
        _ => {
            // Configurations and logs come under any name.
            let text = std::str::from_utf8(bytes).ok()?;
            return (!text.contains('\0')).then(|| text.to_owned());
        }
    };
    extract::text(kind, bytes).ok()
}
