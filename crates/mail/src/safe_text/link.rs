//! Link targets, written so that they do not deceive: absolute, with hosts in their ASCII form.

use std::borrow::Cow;

use unicode_normalization::char::is_combining_mark;
use url::Url;

/// The longest target that is shown in full.
const MAX_URL: usize = 2000;

/// The longest address that counts as the base of others.
const MAX_BASE: usize = 300;

/// The longest telephone number or mail address in a link.
const MAX_CONTACT: usize = 254;

/// The longest host that is converted: names have at most 253 characters, of up to four bytes each.
const MAX_HOST: usize = 1012;

/// What relative links of a document are relative to.
pub(super) fn base(href: &str) -> Option<Url> {
    let url = Url::parse(href.trim()).ok()?;
    (href.len() <= MAX_BASE && is_web(&url)).then_some(url)
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// The target of a link for display; `None` for schemes other than http, https, mailto and tel.
pub(super) fn target(href: &str, base: Option<&Url>) -> Option<String> {
    let href: Cow<'_, str> = if href.contains(['\t', '\n', '\r']) {
        Cow::Owned(href.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect())
    } else {
        Cow::Borrowed(href)
    };
    let href = href.trim_matches(|c: char| c <= ' ');
    if is_plain(href) {
        return Some(cut(href));
    }
    let scheme = href.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("mailto") => mail_target(href.get(7..)?),
        Some("tel") => phone_target(href.get(4..)?),
        _ => {
            let url = match base {
                Some(base) => base.join(href).ok()?,
                None if href.starts_with("//") => Url::parse(&format!("https:{href}")).ok()?,
                None => Url::parse(href).ok()?,
            };
            is_web(&url).then(|| cut(url.as_str()))
        }
    }
}

/// Whether a URL is already in display form.
fn is_plain(href: &str) -> bool {
    let Some(after) = href.strip_prefix("https://").or_else(|| href.strip_prefix("http://")) else {
        return false;
    };
    let host_length = after.find(['/', '?', '#']).unwrap_or(after.len());
    let Some((host, path)) = after.split_at_checked(host_length) else { return false };
    let top = host.rsplit('.').next().unwrap_or_default();
    let plain_host = host.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'));
    plain_host
        && top.len() >= 2
        && top.bytes().all(|byte| byte.is_ascii_lowercase())
        && path.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte))
}

fn cut(url: &str) -> String {
    match url.char_indices().nth(MAX_URL) {
        Some((end, _)) => format!("{}…", url.get(..end).unwrap_or_default()),
        None => url.to_owned(),
    }
}

/// The address of a mailto link, without its parameters.
fn mail_target(text: &str) -> Option<String> {
    let addresses = percent_decode(text.split('?').next().unwrap_or_default());
    let (local, domain) = addresses.rsplit_once('@')?;
    let domain = idna::domain_to_ascii(domain).ok()?;
    let shown = format!("mailto:{local}@{domain}");
    let harmless = |c: char| c.is_ascii_graphic() && !matches!(c, '<' | '>' | '(' | ')' | '"' | '\\');
    (shown.len() <= MAX_CONTACT && shown.chars().all(harmless)).then_some(shown)
}

fn phone_target(text: &str) -> Option<String> {
    let number = percent_decode(text);
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | '*' | '#');
    let shown: String = number.chars().filter(|c| *c != ' ').collect();
    (!shown.is_empty() && shown.len() <= 32 && shown.chars().all(is_number)).then(|| format!("tel:{shown}"))
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = match (first, after) {
            (b'%', [high, low, ..]) => hex_byte(*high, *low),
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? * 16 + digit(low)?)
}

/// Whether the text of a link already is its target.
pub(super) fn says_target(text: &str, target: &str) -> bool {
    let same = |one: &str, two: &str| one.trim_end_matches('/') == two.trim_end_matches('/');
    match target.strip_prefix("mailto:").or_else(|| target.strip_prefix("tel:")) {
        Some(contact) => {
            let bare: String = text.chars().filter(|c| !matches!(c, ' ' | '(' | ')' | '-')).collect();
            text.eq_ignore_ascii_case(contact) || bare == contact || text == target
        }
        None => same(text, target),
    }
}

/// Writes the hosts of addresses within text in their ASCII form.
pub(super) fn with_ascii_hosts(text: String) -> String {
    if text.is_ascii() || !text.contains("://") {
        return text;
    }
    let mut done = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(place) = rest.find("://") {
        let (before, after) = rest.split_at_checked(place + 3).unwrap_or((rest, ""));
        done.push_str(before);
        rest = after;
        let scheme = done.strip_suffix("://").unwrap_or_default();
        let is_web = ends_with_ignoring_case(scheme, "http") || ends_with_ignoring_case(scheme, "https");
        let host = host_of(rest);
        if let Some(ascii) = Some(host).filter(|host| is_web && !host.is_ascii()).and_then(ascii_host) {
            done.push_str(&ascii);
            rest = rest.get(host.len()..).unwrap_or_default();
        }
    }
    done.push_str(rest);
    done
}

fn ends_with_ignoring_case(text: &str, ending: &str) -> bool {
    let tail = text.len().checked_sub(ending.len()).and_then(|start| text.get(start..));
    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(ending))
}

/// The host at the beginning of a text. Where text of another script follows a name such as `com` without a space, it
/// is not part of the host: no such top-level domain exists. Combining marks stay with their character.
fn host_of(text: &str) -> &str {
    let ends = |c: char| {
        c.is_whitespace() || (c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-'))
    };
    let host = text.get(..text.find(ends).unwrap_or(text.len())).unwrap_or_default();
    let top_start = host.rfind('.').map_or(0, |dot| dot + 1);
    let top = host.get(top_start..).unwrap_or_default();
    let letters = top.bytes().take_while(u8::is_ascii_alphabetic).count();
    let is_marked = top.get(letters..).and_then(|rest| rest.chars().next()).is_some_and(is_combining_mark);
    let latin = letters - usize::from(is_marked && letters > 0);
    let end = if latin >= 2 && latin < top.len() { top_start + latin } else { host.len() };
    host.get(..end).unwrap_or(host)
}

/// A host in its ASCII form; `None` for an invalid or overlong one.
fn ascii_host(host: &str) -> Option<String> {
    if host.len() > MAX_HOST {
        return None;
    }
    let ascii = idna::domain_to_ascii(host).ok()?;
    (ascii.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')))
        .then_some(ascii)
}
