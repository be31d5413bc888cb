//! Messages that are made up, for what the public collections have too little of: text, pages, and files of any size.

use std::fmt::Write as _;

use data_encoding::BASE64_MIME;

use super::corpora::{Kind, PreparedMessage};
use crate::{fill::next_random, messages::prose};

/// Bytes of the text of a message.
const TEXT_BYTES: (f64, f64) = (500.0, 16_000.0);
/// Bytes of a page.
const HTML_BYTES: (f64, f64) = (4_000.0, 80_000.0);
/// Bytes of a file, before it is encoded.
const FILE_BYTES: (f64, f64) = (10_000.0, 1_000_000.0);
/// The text beside a page or a file.
const BESIDE_BYTES: usize = 600;

/// The n-th of `count` messages of a kind. Each size is as likely as its double, and the sizes of all of them are the
/// same in every run.
pub(super) fn message(kind: Kind, n: usize, count: usize) -> PreparedMessage {
    let part = match kind {
        Kind::Html => alternatives(n, size(HTML_BYTES, n, count)),
        Kind::File => with_file(n, size(FILE_BYTES, n, count)),
        Kind::Text | Kind::Bounce => {
            let text = prose(n, size(TEXT_BYTES, n, count));
            format!("Content-Type: text/plain; charset=utf-8\n\n{text}")
        }
    };
    let subject = prose(n, 1);
    let raw = format!(
        "Received: from mx.remote.test (mx.remote.test [192.0.2.1]) by relay.remote.test with ESMTP id {n}\n\
         From: Customer {n} <customer-{n}@remote.test>\nTo: bench-0@agents.test\nSubject: {subject}\
         MIME-Version: 1.0\n{part}"
    );
    PreparedMessage::new(raw.as_bytes()).expect("a message that may be sent")
}

/// The n-th of `count` sizes between two, in even steps of their logarithm.
fn size((from, to): (f64, f64), n: usize, count: usize) -> usize {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts stay far below 2^52, and the size between the two"
    )]
    let size = (from * (to / from).powf((n as f64 + 0.5) / count as f64)) as usize;
    size
}

/// A newsletter: its text, and the same as a page.
fn alternatives(n: usize, bytes: usize) -> String {
    let mut page = String::with_capacity(bytes + 1000);
    page.push_str(
        "<!DOCTYPE html>\n<html><head><title>News</title></head>\n<body style=\"margin:0\"><table>\n",
    );
    let mut seed = n;
    while page.len() < bytes {
        seed += 1_000_000;
        let (title, text) = (prose(seed, 1), prose(seed + 1, 400));
        let _ = write!(
            page,
            "<tr><td style=\"padding:12px 24px;font-family:Arial,sans-serif\">\n\
             <h2><a href=\"https://www.remote.test/news/{seed}?from=mail\">{title}</a></h2>\n<p>{text}</p></td></tr>\n"
        );
    }
    page.push_str("</table></body></html>\n");
    let text = prose(n, BESIDE_BYTES);
    format!(
        "Content-Type: multipart/alternative; boundary=\"edge-{n}\"\n\n\
         --edge-{n}\nContent-Type: text/plain; charset=utf-8\n\n{text}\n\
         --edge-{n}\nContent-Type: text/html; charset=utf-8\n\n{page}\n--edge-{n}--\n"
    )
}

/// A short text with a document or a picture.
fn with_file(n: usize, bytes: usize) -> String {
    let (media_type, name, beginning): (_, _, &[u8]) = if n.is_multiple_of(2) {
        ("application/pdf", "report.pdf", b"%PDF-1.7\n")
    } else {
        ("image/jpeg", "picture.jpg", &[0xff, 0xd8, 0xff, 0xe0])
    };
    let mut file = beginning.to_vec();
    let mut state = n as u64;
    while file.len() < bytes {
        // As good as compressed, as such files are.
        file.extend_from_slice(&next_random(&mut state).to_le_bytes());
    }
    let (text, file) = (prose(n, BESIDE_BYTES), BASE64_MIME.encode(&file));
    format!(
        "Content-Type: multipart/mixed; boundary=\"edge-{n}\"\n\n\
         --edge-{n}\nContent-Type: text/plain; charset=utf-8\n\n{text}\n\
         --edge-{n}\nContent-Type: {media_type}; name=\"{name}\"\nContent-Transfer-Encoding: base64\n\
         Content-Disposition: attachment; filename=\"{name}\"\n\n{file}\n--edge-{n}--\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_messages_are_of_their_kind_and_size() {
        for kind in [Kind::Text, Kind::Html, Kind::File] {
            assert_eq!(message(kind, 3, 10).kind, kind);
            assert_eq!(message(kind, 3, 10), message(kind, 3, 10), "the same in every run");
            assert!(!message(kind, 3, 10).subject.is_empty());
        }
        let (first, last) = (message(Kind::File, 0, 100), message(Kind::File, 99, 100));
        assert!((14_000..20_000).contains(&first.rest.len()), "{}", first.rest.len());
        assert!((1_300_000..1_400_000).contains(&last.rest.len()), "{}", last.rest.len());
    }
}
