//! Scanning a message for threats: deceptive links and executable files.
//!
//! The scanner reads bytes and returns a verdict; it fetches nothing and writes nothing. A message with parts that
//! could not be inspected, or that clients could read differently, is never called clean.

mod active_content;
mod archive;
mod blocklist;
mod brands;
pub mod clamd;
mod content;
mod file_names;
mod hosts;
mod html;
mod links;
mod ole;
#[cfg(test)]
mod tests;
mod threat;
mod verdict;

pub use blocklist::Blocklist;
pub use threat::{Kind, Source, Threat};
pub use verdict::{Status, Verdict};

use crate::message::{Automatic, Encoding, File, Message, decode};
use verdict::Findings;

/// Scans a message that was read from `raw`.
pub fn scan(raw: &[u8], message: &Message, blocklist: &Blocklist) -> Verdict {
    let mut findings = Findings { incomplete: !message.faults.is_empty(), ..Findings::default() };
    let mut budget = archive::Budget::default();
    scan_message(raw, message, blocklist, None, 0, &mut budget, &mut findings);
    links::check_raw(raw, blocklist, &mut findings);
    // Also outside of all parts: before, between and after them.
    let is_known = findings.threats.iter().any(|threat| threat.kind == Kind::TestVirus);
    if !is_known && content::has_test_virus(raw) {
        findings.add(Kind::TestVirus, None, None);
    }
    findings.verdict()
}

/// Scans the text and the files of a message, which may be a file itself.
fn scan_message(
    raw: &[u8],
    message: &Message,
    blocklist: &Blocklist,
    within: Option<&str>,
    depth: usize,
    budget: &mut archive::Budget,
    findings: &mut Findings,
) {
    let is_bulk = message.automatic == Some(Automatic::List);
    let mut checker = links::Checker::new(blocklist, is_bulk, within);
    for text in [&message.text, &message.html].into_iter().flatten() {
        if content::has_test_virus(text.as_bytes()) {
            findings.add(Kind::TestVirus, None, within);
        }
        checker.check_text(text, findings);
    }
    if let Some(html) = &message.html {
        checker.check_html(html, findings);
    }
    for file in &message.files {
        let mut scanner =
            Scanner { blocklist, is_bulk, name: within.unwrap_or(&file.name), depth, budget, findings };
        scanner.file(raw, file, true);
    }
    for file in &message.inner {
        let mut scanner =
            Scanner { blocklist, is_bulk, name: within.unwrap_or(&file.name), depth, budget, findings };
        scanner.file(raw, file, false);
    }
}

/// Scans one file of a message.
struct Scanner<'a> {
    blocklist: &'a Blocklist,
    is_bulk: bool,
    /// The name that threats are listed under.
    name: &'a str,
    depth: usize,
    budget: &'a mut archive::Budget,
    findings: &'a mut Findings,
}

impl Scanner<'_> {
    /// Scans a file by its names and its bytes; texts of attached messages also by their links.
    fn file(&mut self, raw: &[u8], file: &File, is_listed: bool) {
        let bytes = decode(raw, file);
        let names: Vec<&str> = std::iter::once(file.name.as_str())
            .chain(file.declared_names.iter().map(String::as_str))
            .collect();
        for name in &names {
            if let Some(kind) = file_names::judge(name) {
                self.findings.add(kind, None, Some(self.name));
            }
        }
        let is_page = file.media_type == "text/html" || names.iter().any(|name| content::is_page_name(name));
        let is_text = is_page || file.media_type.starts_with("text/");
        if is_text && !self.budget.take_page(bytes.len()) {
            self.findings.incomplete = true;
        } else if is_text {
            let text = String::from_utf8_lossy(&bytes);
            let mut checker = links::Checker::new(self.blocklist, self.is_bulk, Some(self.name));
            checker.check_text(&text, self.findings);
            if is_page {
                checker.check_html(&text, self.findings);
            }
        }
        let is_message = matches!(file.media_type.as_str(), "message/rfc822" | "message/global");
        // The parts of a message that is not encoded were found when the outer one was read.
        let is_read = is_message && file.encoding == Encoding::Identity;
        if !is_read && (is_message || file_names::ending(&file.name) == "eml") {
            self.message(&bytes);
        }
        if matches!(
            file.media_type.as_str(),
            "application/pkcs7-mime" | "application/x-pkcs7-mime" | "application/pgp-encrypted"
        ) {
            self.findings.incomplete = true;
        }
        let is_body = !is_listed && file.declared_names.is_empty() && file.media_type.starts_with("text/");
        let mut scanner =
            content::FileScanner { name: self.name, is_body, budget: self.budget, findings: self.findings };
        scanner.scan(&bytes, &file.name, &file.media_type, content::Nesting::default());
    }

    /// Scans a message that is attached as a file.
    fn message(&mut self, bytes: &[u8]) {
        if self.depth >= archive::MAX_DEPTH {
            self.findings.incomplete = true;
            return;
        }
        let inner = crate::message::read(bytes);
        self.findings.incomplete |= !inner.faults.is_empty();
        scan_message(
            bytes,
            &inner,
            self.blocklist,
            Some(self.name),
            self.depth + 1,
            self.budget,
            self.findings,
        );
    }
}
