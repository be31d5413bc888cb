//! Hosts in links: their registrable domain, and whether they imitate another.

use std::net::Ipv4Addr;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use url::{Host, Url};

use super::brands;
use super::threat::Kind;

/// Bytes of a URL that are parsed; the host is at its beginning.
const MAX_URL: usize = 8192;

/// Second-level labels under which names are registered in country domains.
const SECOND_LEVEL: [&str; 14] =
    ["ac", "co", "com", "edu", "gob", "go", "gov", "govt", "ne", "net", "nom", "or", "org", "sch"];

/// Top-level domains where whole names in Cyrillic or Greek are legitimate.
const NON_LATIN_TLDS: [&str; 18] = [
    "ru", "su", "ua", "by", "kz", "bg", "rs", "me", "mk", "mn", "kg", "tj", "uz", "md", "gr", "cy", "eu",
    "ge",
];

/// Words in a link to a bare IP address that suggest phishing.
const LURES: [&str; 14] = [
    "login", "signin", "sign-in", "logon", "verify", "account", "secure", "password", "update", "confirm",
    "bank", "wallet", "auth", "webmail",
];

/// Parses a URL of the web.
pub(super) fn parse(text: &str) -> Option<Url> {
    let mut end = text.len().min(MAX_URL);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = text.get(..end)?.trim();
    let url = match text.get(..2) {
        Some("//" | "\\\\" | "/\\" | "\\/") => Url::parse(&format!("https:{text}")),
        _ => Url::parse(text),
    };
    url.ok().filter(|url| matches!(url.scheme(), "http" | "https" | "ftp"))
}

/// The domain that someone can register: the public suffix and one label, by a short list of the common suffixes.
pub(super) fn registrable(host: &str) -> &str {
    let host = host.trim_end_matches('.');
    let mut dots = host.rmatch_indices('.').map(|(index, _)| index);
    let (Some(last), Some(second)) = (dots.next(), dots.next()) else { return host };
    let top = host.get(last + 1..).unwrap_or_default();
    let middle = host.get(second + 1..last).unwrap_or_default();
    let has_two_labels = top.len() == 2 && SECOND_LEVEL.contains(&middle);
    let cut = if has_two_labels { dots.next() } else { Some(second) };
    cut.and_then(|cut| host.get(cut + 1..)).unwrap_or(host)
}

/// The label that was registered.
pub(super) fn name(host: &str) -> &str {
    registrable(host).split('.').next().unwrap_or_default()
}

/// The threat in a link, judged by itself.
pub(super) fn judge(text: &str, url: &Url) -> Option<Kind> {
    if poses_by_user(url) {
        return Some(Kind::UrlCredentials);
    }
    match url.host()? {
        Host::Ipv4(address) => judge_ip(text, url, address),
        Host::Ipv6(_) => asks_for_more(url).then_some(Kind::IpAddressLink),
        Host::Domain(domain) => judge_domain(domain),
    }
}

/// Whether the userinfo has a password, or looks like a host.
fn poses_by_user(url: &Url) -> bool {
    let user = url.username();
    url.password().is_some() || user.contains('.') || user.contains('%')
}

/// A disguised IP address, or one with a login path.
fn judge_ip(text: &str, url: &Url, address: Ipv4Addr) -> Option<Kind> {
    let is_plain = text.contains(&address.to_string());
    (!is_plain || asks_for_more(url)).then_some(Kind::IpAddressLink)
}

fn asks_for_more(url: &Url) -> bool {
    let rest = url.path().to_ascii_lowercase();
    let query = url.query().unwrap_or_default().to_ascii_lowercase();
    LURES.iter().any(|lure| rest.contains(lure) || query.contains(lure))
}

/// Judges the characters of a domain.
fn judge_domain(domain: &str) -> Option<Kind> {
    let domain = domain.trim_end_matches('.');
    if hides_brand_below(domain) {
        return Some(Kind::LookalikeHost);
    }
    let (shown, _) = idna::domain_to_unicode(domain);
    let top = domain.rsplit('.').next().unwrap_or_default();
    let is_home = NON_LATIN_TLDS.contains(&top) || top.starts_with("xn--");
    for label in shown.split('.') {
        if label.is_ascii() {
            continue;
        }
        if mixes_scripts(label) || brands::is_brand(&skeleton(label)) {
            return Some(Kind::PunycodeHost);
        }
        if !is_home
            && label.chars().any(is_foreign)
            && label.chars().all(|c| c.is_ascii() || latin_look_alike(c) != c)
        {
            return Some(Kind::PunycodeHost);
        }
    }
    imitates_brand(name(domain)).then_some(Kind::LookalikeHost)
}

/// Whether a well-known domain is a subdomain of another one, as in `paypal.com.evil.test`.
fn hides_brand_below(domain: &str) -> bool {
    let own = registrable(domain);
    let below = domain.strip_suffix(own).unwrap_or_default();
    let labels: Vec<&str> = below.split('.').filter(|label| !label.is_empty()).take(40).collect();
    labels.windows(2).any(|pair| {
        matches!(pair, [brand, top] if brands::is_brand(brand) && matches!(*top, "com" | "net" | "org" | "co" | "de" | "uk"))
    })
}

/// Whether an ASCII label reads like a well-known name but is another.
pub(super) fn imitates_brand(label: &str) -> bool {
    if !label.is_ascii() || brands::is_brand(label) {
        return false;
    }
    let read = look_alike_form(label);
    let loosely = read.replace('i', "l");
    brands::BRANDS.iter().any(|brand| {
        let is_long = brand.len() >= 6;
        read == *brand || (is_long && loosely == brand.replace('i', "l"))
    })
}

/// A label with look-alike ASCII sequences replaced.
pub(super) fn look_alike_form(label: &str) -> String {
    label
        .replace('0', "o")
        .replace('1', "l")
        .replace("rn", "m")
        .replace("vv", "w")
        .replace('5', "s")
        .replace('3', "e")
}

/// Whether a label mixes Latin with look-alike scripts, which legitimate names do not.
fn mixes_scripts(label: &str) -> bool {
    let has_latin = label
        .chars()
        .any(|c| c.is_ascii_alphabetic() || matches!(c, '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}'));
    let has_cyrillic = label.chars().any(|c| matches!(c, '\u{400}'..='\u{52f}' | '\u{1c80}'..='\u{1c8f}'));
    let has_greek = label.chars().any(|c| matches!(c, '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}'));
    let has_other = label
        .chars()
        .any(|c| matches!(c, '\u{530}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}' | '\u{ab70}'..='\u{abbf}'));
    [has_latin, has_cyrillic, has_greek, has_other].into_iter().filter(|has| *has).count() > 1
}

/// Whether a character is of a script that looks like Latin.
fn is_foreign(c: char) -> bool {
    matches!(c, '\u{370}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}' | '\u{1c80}'..='\u{1c8f}' | '\u{1f00}'..='\u{1fff}')
}

/// A label with look-alikes replaced by Latin characters, without combining marks.
fn skeleton(label: &str) -> String {
    let latin: String = label.nfkd().filter(|c| !is_combining_mark(*c)).map(latin_look_alike).collect();
    look_alike_form(&latin.to_lowercase())
}

/// The Latin character that a character looks like, or itself.
fn latin_look_alike(c: char) -> char {
    match c {
        'а' | 'ɑ' | 'α' => 'a',
        'Ь' | 'ь' | 'ƅ' => 'b',
        'с' | 'ϲ' | 'ᴄ' => 'c',
        'ԁ' | 'ɗ' => 'd',
        'е' | 'ҽ' | 'є' | 'ε' => 'e',
        'ɡ' | 'ց' => 'g',
        'һ' | 'հ' => 'h',
        'і' | 'ı' | 'ι' | 'ɩ' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ӏ' | 'ⅼ' | 'ł' | 'ǀ' => 'l',
        'м' => 'm',
        'п' | 'ո' | 'η' => 'n',
        'о' | 'ο' | 'օ' | 'ø' | 'σ' => 'o',
        'р' | 'ρ' | 'ք' => 'p',
        'ԛ' | 'զ' => 'q',
        'г' => 'r',
        'ѕ' | 'ꜱ' => 's',
        'т' | 'τ' | 'ŧ' => 't',
        'υ' | 'ս' => 'u',
        'ѵ' | 'ν' => 'v',
        'ԝ' | 'ѡ' | 'ω' | 'ա' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'ү' | 'γ' => 'y',
        'ᴢ' => 'z',
        _ => c,
    }
}
