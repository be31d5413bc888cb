//! Links of a text or page: finding them, and comparing their targets with what they show.
//!
//! When is a link misleading? Newsletters show `example.com` and link to a click tracker, so two different domains
//! alone prove nothing. A link is misleading when its text is itself a host or URL of another registrable domain,
//! unless
//!
//! - both domains have the same registered name (`example.com` and `example.de`),
//! - the target is a known link protection service,
//! - the target is the tracker of a known mailer, and the shown name is no well-known one, or
//! - the target looks like a click tracker, the shown name is no well-known one, and either the message says it is bulk mail
//!   (List-Unsubscribe and similar) or the text is a bare host, without scheme and path.
//!
//! A target that contains the shown domain (`example.com.evil.test`) or imitates its characters is always misleading.

use std::collections::HashSet;

use url::{Host, Url};

use super::blocklist::Blocklist;
use super::html::{Piece, Pieces, Tag, unescape};
use super::threat::Kind;
use super::verdict::Findings;
use super::{brands, hosts};

/// The most different links that are judged.
const MAX_LINKS: usize = 2000;

/// Characters of a link's text that are read.
const MAX_LINK_TEXT_CHARS: usize = 300;

/// The longest link in running text.
const MAX_IN_TEXT: usize = 2000;

/// Attributes that hold a link.
const ATTRIBUTES: [&str; 10] =
    ["href", "src", "action", "formaction", "background", "poster", "data", "xlink:href", "longdesc", "cite"];

/// Top-level domains that a bare host in a link's text may have. Endings of files (`md`, `sh`, `zip`) are left out.
const TOP_LEVEL_DOMAINS: [&str; 60] = [
    "com", "net", "org", "edu", "gov", "mil", "int", "info", "biz", "io", "app", "dev", "xyz", "online",
    "site", "shop", "store", "tech", "cloud", "bank", "test", "example", "invalid", "eu", "us", "uk", "de",
    "fr", "it", "es", "nl", "be", "at", "ch", "se", "no", "dk", "fi", "pt", "ie", "cz", "gr", "ru", "ua",
    "tr", "in", "cn", "jp", "kr", "au", "nz", "br", "mx", "ar", "za", "ca", "co", "me", "tv", "il",
];

/// Finds blocked links in the raw bytes of a whole message, independent of its parts.
pub(super) fn check_raw(raw: &[u8], blocklist: &Blocklist, findings: &mut Findings) {
    if blocklist.is_empty() {
        return;
    }
    let mut seen = HashSet::new();
    for start in memchr::memmem::find_iter(raw, b"://").take(MAX_LINKS * 10) {
        let from = start.saturating_sub(5);
        let window = raw.get(from..raw.len().min(start + 300)).unwrap_or_default();
        let text = String::from_utf8_lossy(window);
        for link in in_text(&text).into_iter().take(1) {
            if seen.len() < MAX_LINKS && seen.insert(link.to_owned()) && blocklist.matches(link) {
                findings.add(Kind::BlockedUrl, Some(link), None);
            }
        }
    }
}

/// Judges the links of one message or file.
pub(super) struct Checker<'a> {
    blocklist: &'a Blocklist,
    is_bulk: bool,
    file_name: Option<&'a str>,
    seen: HashSet<(String, String)>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(blocklist: &'a Blocklist, is_bulk: bool, file_name: Option<&'a str>) -> Self {
        Self { blocklist, is_bulk, file_name, seen: HashSet::new() }
    }

    /// Judges every link in running text.
    pub(super) fn check_text(&mut self, text: &str, findings: &mut Findings) {
        let going_on = in_text(text).into_iter().all(|link| self.judge(link, "", findings));
        if going_on {
            bare_hosts(text).iter().all(|link| self.judge(link, "", findings));
        }
    }

    /// Judges every link of a page.
    pub(super) fn check_html(&mut self, html: &str, findings: &mut Findings) {
        let mut anchor: Option<(String, String)> = None;
        for piece in Pieces::new(html) {
            let going_on = match piece {
                Piece::Open(tag) => {
                    let finished = if tag.name == "a" { anchor.take() } else { None };
                    if tag.name == "a" {
                        anchor = tag.get("href").map(|target| (target.to_owned(), String::new()));
                    }
                    self.tag(&tag, findings) && self.anchor(finished, findings)
                }
                Piece::Close(name) => {
                    let finished = if name == "a" { anchor.take() } else { None };
                    self.anchor(finished, findings)
                }
                Piece::Text(text) => {
                    if let Some((_, shown)) = &mut anchor {
                        shown.extend(
                            unescape(text).chars().take(MAX_LINK_TEXT_CHARS.saturating_sub(shown.len())),
                        );
                    }
                    self.style(text, findings)
                }
            };
            if !going_on {
                return;
            }
        }
        self.anchor(anchor, findings);
    }

    /// Judges a link with the text that it shows.
    fn anchor(&mut self, anchor: Option<(String, String)>, findings: &mut Findings) -> bool {
        anchor.is_none_or(|(target, shown)| self.judge(&target, &shown, findings))
    }

    /// Judges the links in the attributes of a tag.
    fn tag(&mut self, tag: &Tag<'_>, findings: &mut Findings) -> bool {
        for (name, value) in &tag.attributes {
            let going_on = match name.as_str() {
                "style" => self.style(value, findings),
                "srcset" => value.split(',').all(|link| self.judge(link.trim(), "", findings)),
                "content" if tag.name == "meta" => match value.to_ascii_lowercase().find("url=") {
                    Some(offset) => {
                        let link = value.get(offset + 4..).unwrap_or_default();
                        self.judge(link.trim_matches(['"', '\'', ' ']), "", findings)
                    }
                    None => true,
                },
                // Judged together with its text, at the end tag.
                "href" if tag.name == "a" => true,
                name if ATTRIBUTES.contains(&name) => self.judge(value, "", findings),
                _ => true,
            };
            if !going_on {
                return false;
            }
        }
        true
    }

    /// Judges the links of style rules.
    fn style(&mut self, rules: &str, findings: &mut Findings) -> bool {
        for (offset, _) in rules.match_indices("url(") {
            let rest = rules.get(offset + 4..).unwrap_or_default();
            let link = rest.split(')').next().unwrap_or_default().trim_matches(['"', '\'', ' ']);
            if !self.judge(link, "", findings) {
                return false;
            }
        }
        true
    }

    /// Judges one link; false when there are too many.
    fn judge(&mut self, target: &str, shown: &str, findings: &mut Findings) -> bool {
        let target: String =
            target.trim().chars().filter(|c| !matches!(c, '\t' | '\r' | '\n')).take(8192).collect();
        let shown = shown.trim();
        if target.is_empty()
            || target.starts_with('#')
            || self.seen.contains(&(target.clone(), shown.to_owned()))
        {
            return true;
        }
        if self.seen.len() >= MAX_LINKS {
            findings.incomplete = true;
            return false;
        }
        if let Some(kind) = self.kind(&target, shown) {
            findings.add(kind, Some(&target), self.file_name);
        }
        self.seen.insert((target, shown.to_owned()));
        true
    }

    /// What is wrong with a link.
    fn kind(&self, target: &str, shown: &str) -> Option<Kind> {
        if let Some(kind) = judge_scheme(target) {
            return Some(kind);
        }
        let url = hosts::parse(target)?;
        if self.blocklist.matches_url(&url) {
            return Some(Kind::BlockedUrl);
        }
        hosts::judge(target, &url).or_else(|| self.misleads(&url, shown).then_some(Kind::MisleadingLink))
    }

    /// Whether the text of a link shows another host than it leads to.
    fn misleads(&self, url: &Url, shown: &str) -> bool {
        let Some(shown) = ShownHost::read(shown) else { return false };
        let Some(host) = url.host() else { return false };
        let Host::Domain(target) = host else { return url.host_str() != Some(shown.host.as_str()) };
        let target = target.trim_end_matches('.');
        let (shown_domain, target_domain) = (hosts::registrable(&shown.host), hosts::registrable(target));
        if shown_domain == target_domain {
            return false;
        }
        let dotted = format!(".{target}");
        let hyphened = shown_domain.replace('.', "-");
        let contains_shown = [format!(".{shown_domain}."), format!(".{hyphened}."), format!(".{hyphened}-")]
            .iter()
            .any(|disguise| dotted.contains(disguise.as_str()));
        let imitates_shown = hosts::look_alike_form(target_domain) == hosts::look_alike_form(shown_domain);
        if contains_shown || imitates_shown {
            return true;
        }
        if hosts::name(&shown.host) == hosts::name(target) || brands::is_protector(target) {
            return false;
        }
        let is_brand = brands::is_brand(hosts::name(&shown.host));
        let may_count = brands::counts_clicks(target) && (self.is_bulk || shown.is_bare);
        is_brand || !(brands::is_tracker(target) || may_count)
    }
}

/// Links that carry or run something by themselves.
fn judge_scheme(target: &str) -> Option<Kind> {
    let (scheme, rest) = target.split_once(':')?;
    let rest = rest.trim_start().to_ascii_lowercase();
    match scheme.trim().to_ascii_lowercase().as_str() {
        "javascript" | "vbscript" | "livescript" => {
            // Newsletter builders leave these behind; they are harmless.
            let does_nothing =
                matches!(rest.trim_end_matches(';').trim(), "" | "void(0)" | "void 0" | "return false");
            (!does_nothing).then_some(Kind::ScriptLink)
        }
        "data" => {
            let media_type = rest.split([';', ',']).next().unwrap_or_default().trim();
            let is_page =
                matches!(media_type, "text/html" | "application/xhtml+xml" | "text/xml" | "application/xml")
                    || media_type.contains("javascript");
            is_page.then_some(Kind::DataUrl)
        }
        _ => None,
    }
}

/// A link's text that is itself a host or URL.
struct ShownHost {
    host: String,
    /// Whether it is a host alone, without scheme and path.
    is_bare: bool,
}

impl ShownHost {
    fn read(text: &str) -> Option<Self> {
        let text = text.trim_matches(|c: char| {
            c.is_whitespace() || matches!(c, '<' | '>' | '"' | '\'' | '(' | ')' | '.' | ',')
        });
        let text: String = text
            .chars()
            .filter(|c| !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'))
            .collect();
        if text.contains(char::is_whitespace) || text.contains('@') {
            return None;
        }
        let lower = text.to_lowercase();
        if lower.starts_with("http://") || lower.starts_with("https://") {
            let host = hosts::parse(&lower)?.host_str()?.trim_end_matches('.').to_owned();
            return host.contains('.').then_some(Self { host, is_bare: false });
        }
        let host_part = lower.split(['/', '?', '#', ':']).next()?;
        let top = host_part.rsplit('.').next()?;
        if !host_part.contains('.') || !(TOP_LEVEL_DOMAINS.contains(&top) || lower.starts_with("www.")) {
            return None;
        }
        let host = hosts::parse(&format!("http://{host_part}"))?.host_str()?.to_owned();
        Some(Self { host, is_bare: host_part.len() == lower.len() })
    }
}

/// Words that mail clients turn into links without a scheme: those that begin with `www.`.
fn bare_hosts(text: &str) -> Vec<String> {
    let is_separator =
        |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '(' | ')' | ',' | ';' | '\'');
    let mut found = Vec::new();
    let mut behind = 0;
    // Dots are rarer than other characters.
    for dot in memchr::memchr_iter(b'.', text.as_bytes()) {
        let Some(start) = dot.checked_sub(3).filter(|start| *start >= behind) else { continue };
        let Some(rest) = text.get(start..) else { continue };
        let begins = rest.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("www."))
            && text.get(..start).and_then(|before| before.chars().next_back()).is_none_or(is_separator);
        if !begins {
            continue;
        }
        let word = rest.split(is_separator).next().unwrap_or_default();
        behind = start + word.len();
        if word.len() > 7 && word.len() < 300 {
            found.push(format!("http://{}", word.trim_end_matches(['.', '!', '?', ':'])));
        }
        if found.len() > MAX_LINKS {
            break;
        }
    }
    found
}

/// The links in running text: what begins with a scheme of the web.
fn in_text(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    let mut position = 0;
    while let Some(start) = next_start(text, position) {
        let rest = text.get(start..).unwrap_or_default();
        let end = rest
            .char_indices()
            .find(|(index, c)| {
                *index >= MAX_IN_TEXT
                    || c.is_whitespace()
                    || matches!(c, '<' | '>' | '"' | '`' | '{' | '}' | '|' | '^')
            })
            .map_or(rest.len(), |(index, _)| index);
        let link = rest
            .get(..end)
            .unwrap_or_default()
            .trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'', '*', '_']);
        links.push(link);
        position = start + end.max(1);
        if links.len() > MAX_LINKS * 2 {
            break;
        }
        while !text.is_char_boundary(position) {
            position += 1;
        }
    }
    links
}

/// Where the next link begins.
fn next_start(text: &str, from: usize) -> Option<usize> {
    let mut search = from;
    while let Some(found) = text.get(search..).and_then(|rest| memchr::memmem::find(rest.as_bytes(), b"://"))
    {
        let offset = search + found;
        let before = text.as_bytes().get(from..offset).unwrap_or_default();
        let length = before.iter().rev().take(8).take_while(|byte| byte.is_ascii_alphabetic()).count();
        let scheme = before.get(before.len() - length..).unwrap_or_default().to_ascii_lowercase();
        for known in [&b"https"[..], b"http", b"ftp"] {
            if scheme.ends_with(known) {
                return Some(offset - known.len());
            }
        }
        search = offset + 3;
    }
    None
}
