//! The verdict of a scan, collected from the threats found.
//!
//! A message that could not be scanned as a whole is never called clean.

use super::threat::{Kind, Source, Threat};

/// The most threats that are listed.
const MAX_THREATS: usize = 50;

/// The longest URL that is listed.
const MAX_LISTED_URL: usize = 2000;

/// The status of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Everything was scanned, and nothing was found.
    Clean,
    /// Something harmful was found.
    Flagged,
    /// Nothing was found, but not everything could be scanned.
    Skipped,
}

/// The verdict of the scanner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The status.
    pub status: Status,
    /// What was found, at most 50.
    pub threats: Vec<Threat>,
}

/// What was found so far.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) threats: Vec<Threat>,
    /// Whether something could not be scanned.
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
