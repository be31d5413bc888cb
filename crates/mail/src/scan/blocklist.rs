//! Block lists: hosts with their subdomains, and URL prefixes.

use std::collections::{HashMap, HashSet};

use super::hosts;

/// The most labels of a host that are looked up.
const MAX_LABELS: usize = 40;

/// Hosts and URLs that are known to be harmful.
#[derive(Debug, Default)]
pub struct Blocklist {
    hosts: HashSet<Box<str>>,
    /// Prefixes of what follows the host, by host.
    beginnings: HashMap<Box<str>, Vec<Box<str>>>,
}

impl Blocklist {
    /// Parses a list: one host or URL prefix on each line, comments after `#`.
    ///
    /// Lines in the form of a hosts file (`0.0.0.0 name`) count as hosts. Other lines are skipped.
    pub fn parse(text: &str) -> Self {
        let mut list = Self::default();
        for line in text.lines() {
            // A URL may contain a `#`, but no space before it.
            let content = line.split(" #").next().unwrap_or_default().trim();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            if let Some(entry) = content.split_ascii_whitespace().last() {
                list.add(entry);
            }
        }
        list
    }

    /// Adds the entries of another list.
    pub fn extend(&mut self, other: Self) {
        self.hosts.extend(other.hosts);
        for (host, beginnings) in other.beginnings {
            self.beginnings.entry(host).or_default().extend(beginnings);
        }
    }

    /// Whether nothing is on the list.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.beginnings.is_empty()
    }

    /// Whether a URL is on the list.
    pub fn matches(&self, url: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        hosts::parse(url).is_some_and(|url| self.matches_url(&url))
    }

    /// Whether a parsed URL is on the list.
    pub(super) fn matches_url(&self, url: &url::Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let host = host.trim_end_matches('.');
        if suffixes(host).any(|suffix| self.hosts.contains(suffix)) {
            return true;
        }
        let Some(beginnings) = self.beginnings.get(host) else { return false };
        let rest = url.as_str().get(url::Position::BeforePath.index(url)..).unwrap_or_default();
        beginnings.iter().any(|beginning| rest.starts_with(&**beginning))
    }

    fn add(&mut self, entry: &str) {
        let entry = entry.strip_prefix("*.").unwrap_or(entry);
        if is_plain_host(entry) {
            self.hosts.insert(entry.into());
            return;
        }
        let has_scheme = entry.contains("://");
        let address = if has_scheme { entry.to_owned() } else { format!("http://{entry}") };
        let Some(url) = hosts::parse(&address) else { return };
        let Some(host) = url.host_str() else { return };
        let host = host.trim_end_matches('.');
        let rest = url.as_str().get(url::Position::BeforePath.index(&url)..).unwrap_or_default();
        if rest.is_empty() || rest == "/" {
            self.hosts.insert(host.into());
        } else {
            self.beginnings.entry(host.into()).or_default().push(rest.into());
        }
    }
}

/// Whether an entry is a host in the form in which hosts are looked up; most lines of long lists are.
fn is_plain_host(entry: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    let top = entry.rsplit_once('.').map(|(_, top)| top).unwrap_or_default();
    entry.bytes().all(is_plain) && top.starts_with(|c: char| c.is_ascii_lowercase())
}

/// A host and every domain above it.
fn suffixes(host: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(host), |host| host.split_once('.').map(|(_, rest)| rest)).take(MAX_LABELS)
}

/// Where a part of a URL begins.
trait Index {
    fn index(self, url: &url::Url) -> usize;
}

impl Index for url::Position {
    fn index(self, url: &url::Url) -> usize {
        url[..self].len()
    }
}
