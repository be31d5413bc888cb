//! Signatures of a message: DKIM (RFC 6376) and the forwarders' chain of ARC (RFC 8617).
//!
//! mail-auth does the cryptography. This module adds the rules that it leaves to its callers: which signatures count,
//! that they cover the From line and the whole body, and what their keys may be used for.

use mail_auth::common::crypto::Algorithm;
use mail_auth::common::verify::VerifySignature;
use mail_auth::dkim::{Canonicalization, Signature};
use mail_auth::{AuthenticatedMessage, DkimOutput, DkimResult};

use super::verdict::Verdict;
use crate::dns::Dns;

/// The largest message whose signatures are checked.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Signatures that are checked, the topmost first; further ones are ignored.
const MAX_SIGNATURES: usize = 10;

/// Links of a chain of forwarders that are checked.
const MAX_ARC_SETS: usize = 20;

/// Header names that a signature may list; matching them to headers costs their product.
const MAX_SIGNED_NAMES: usize = 200;

/// What the signatures of a message say.
pub(super) struct Signatures {
    /// All of them together: one valid signature is enough.
    pub(super) verdict: Verdict,
    /// Each checked signature's domain and verdict.
    pub(super) checked: Vec<(String, Verdict)>,
    /// Whether the checks finished.
    pub(super) complete: bool,
    /// The chain of forwarders.
    pub(super) arc: Verdict,
}

impl Signatures {
    /// The result when the checks did not finish.
    pub(super) fn undecided() -> Self {
        Self { verdict: Verdict::Unknown, checked: Vec::new(), complete: false, arc: Verdict::Unknown }
    }
}

/// Checks the signatures of a message whose headers have been found to be readable in one way only.
pub(super) async fn check(dns: &Dns, raw: &[u8]) -> Signatures {
    if raw.len() > MAX_MESSAGE_BYTES {
        return Signatures::undecided();
    }
    let Some(mut message) = AuthenticatedMessage::parse(raw) else { return Signatures::undecided() };
    correct_body_hashes(&mut message);
    let refused = message.has_dkim_errors || keep_acceptable(&mut message);
    let outputs = dns.for_signatures().verify_dkim(&message).await;
    let mut checked = Vec::new();
    for output in &outputs {
        if let Some(signature) = output.signature() {
            checked.push((signature.d.to_ascii_lowercase(), judge(dns, output, signature).await));
        }
    }
    let any = |wanted| checked.iter().any(|(_, verdict)| *verdict == wanted);
    let verdict = if any(Verdict::Pass) {
        Verdict::Pass
    } else if any(Verdict::Unknown) || (checked.is_empty() && !refused) {
        Verdict::Unknown
    } else {
        Verdict::Fail
    };
    Signatures { verdict, arc: check_arc(dns, &message).await, checked, complete: true }
}

/// Drops signatures that cannot count even if they are valid, and returns whether there were any.
fn keep_acceptable(message: &mut AuthenticatedMessage<'_>) -> bool {
    let before = message.dkim_headers.len();
    message.dkim_headers.truncate(MAX_SIGNATURES);
    message.dkim_headers.retain(|header| is_acceptable(&header.header));
    for header in &mut message.dkim_headers {
        // Reports and third-party signing policies are not needed and would only cost DNS queries.
        header.header.r = false;
        header.header.atps = None;
    }
    before != message.dkim_headers.len()
}

/// Whether a signature is of the known version, made with a hash that still counts (RFC 8301), and covers the author
/// and the whole body.
fn is_acceptable(signature: &Signature) -> bool {
    signature.v == 1
        && signature.a != Algorithm::RsaSha1
        && signature.l == 0
        && signature.h.len() <= MAX_SIGNED_NAMES
        && signature.h.iter().any(|name| name.trim().eq_ignore_ascii_case("from"))
}

async fn judge(dns: &Dns, output: &DkimOutput<'_>, signature: &Signature) -> Verdict {
    match output.result() {
        DkimResult::Pass => match dns.txt(&signature.domain_key()).await {
            Ok(records) if records.iter().any(|record| may_sign_mail(record)) => Verdict::Pass,
            Ok(_) => Verdict::Fail,
            Err(_) => Verdict::Unknown,
        },
        DkimResult::TempError(_) => Verdict::Unknown,
        DkimResult::Neutral(_) | DkimResult::Fail(_) | DkimResult::PermError(_) | DkimResult::None => {
            Verdict::Fail
        }
    }
}

/// Whether a key record lets its key sign mail with SHA-256 (the tags `s` and `h`).
fn may_sign_mail(record: &[u8]) -> bool {
    let text = String::from_utf8_lossy(record);
    text.split(';').filter_map(|tag| tag.split_once('=')).all(|(name, value)| {
        let mut items = value.split(':').map(str::trim);
        match name.trim() {
            "s" => items.any(|item| item == "*" || item.eq_ignore_ascii_case("email")),
            "h" => items.any(|item| item.eq_ignore_ascii_case("sha256")),
            _ => true,
        }
    })
}

/// Repairs the hashes of bodies that end in lines of blanks.
///
/// mail-auth 0.13.3 hashes such lines in relaxed form, where the standard drops them; 0.15.0 does not. Without them it
/// hashes correctly, and by the standard both are the same body.
pub(super) fn correct_body_hashes(message: &mut AuthenticatedMessage<'_>) {
    let raw = message.raw_message;
    let end = without_blank_lines(raw, message.body_offset());
    let tail = raw.get(end..).unwrap_or_default();
    if message.body_hashes.is_empty() || !tail.iter().any(|byte| matches!(byte, b' ' | b'\t')) {
        return;
    }
    let Some(shorter) = raw.get(..end).and_then(AuthenticatedMessage::parse) else { return };
    for (canonicalization, algorithm, length, hash) in &mut message.body_hashes {
        if *canonicalization == Canonicalization::Relaxed {
            let same = shorter.body_hashes.iter().find(|(other, hashed_by, limit, _)| {
                other == canonicalization && hashed_by == algorithm && limit == length
            });
            if let Some((_, _, _, corrected)) = same {
                hash.clone_from(corrected);
            }
        }
    }
}

/// Where a body ends without its trailing blank lines.
pub(crate) fn without_blank_lines(raw: &[u8], body_start: usize) -> usize {
    let body = raw.get(body_start..).unwrap_or_default();
    let last_ink = body.iter().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
    let from = last_ink.map_or(0, |ink| ink + 1);
    let line_end = body.get(from..).and_then(|rest| memchr::memchr(b'\n', rest));
    match (last_ink, line_end) {
        (None, _) => body_start.min(raw.len()),
        (Some(_), Some(end)) => body_start + from + end + 1,
        (Some(_), None) => raw.len(),
    }
}

async fn check_arc(dns: &Dns, message: &AuthenticatedMessage<'_>) -> Verdict {
    let sets = [message.ams_headers.len(), message.as_headers.len(), message.aar_headers.len()];
    let longest = sets.into_iter().max().unwrap_or_default();
    if longest == 0 && !message.has_arc_errors {
        return Verdict::Unknown;
    }
    let readable = message.ams_headers.iter().all(|header| header.header.h.len() <= MAX_SIGNED_NAMES);
    if longest > MAX_ARC_SETS || !readable {
        return Verdict::Fail;
    }
    match dns.for_signatures().verify_arc(message).await.result() {
        DkimResult::Pass => Verdict::Pass,
        DkimResult::TempError(_) | DkimResult::None => Verdict::Unknown,
        DkimResult::Neutral(_) | DkimResult::Fail(_) | DkimResult::PermError(_) => Verdict::Fail,
    }
}
