//! What a scan comes to: the threats as they are found, and the answer that is made of them.
//!
//! A message that could not be looked at as a whole is never called clean.

use super::threat::{Kind, Source, Threat};

/// The most threats that are listed.
const MAX_THREATS: usize = 50;

/// The longest URL that is listed.
const MAX_LISTED_URL: usize = 2000;

/// What the scan of a message came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Everything was looked at, and nothing was found.
    Clean,
    /// Something harmful was found.
    Flagged,
    /// Nothing was found, but not everything could be looked at.
    Skipped,
}

/// The answer of the scanner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What it came to.
    pub status: Status,
    /// What was found, at most 50.
    pub threats: Vec<Threat>,
}

/// What was found so far.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) threats: Vec<Threat>,
    /// Whether something could not be looked at.
    pub(super) incomplete: bool,
}

impl Findings {
    pub(super) fn add(&mut self, kind: Kind, url: Option<&str>, file_name: Option<&str>) {
        let source = if file_name.is_some() { Source::Attachment } else { Source::Body };
        let url = url.map(|url| url.chars().take(MAX_LISTED_URL).collect());
        let threat = Threat { url, kind, source, file_name: file_name.map(str::to_owned) };
        if self.threats.len() < MAX_THREATS && !self.threats.contains(&threat) {
            self.threats.push(threat);
        }
    }

    pub(super) fn verdict(self) -> Verdict {
        let status = match (self.threats.is_empty(), self.incomplete) {
            (false, _) => Status::Flagged,
            (true, true) => Status::Skipped,
            (true, false) => Status::Clean,
        };
        Verdict { status, threats: self.threats }
    }
}
