//! The grammar of SPF records (RFC 7208, sections 4.6.1, 5 and 7.1), exactly as written.
//!
//! mail-auth 0.13.3 passes over terms that it does not know and repairs numbers that are out of range; by the standard
//! such a record is an error as a whole, and what it says must not be acted on.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The record with the terms that decide, if every term is well-formed: explanations and unknown modifiers are left
/// out, because they change no result.
pub(super) fn decisive(record: &[u8]) -> Option<String> {
    let text = str::from_utf8(record).ok().filter(|text| text.is_ascii())?;
    let mut kept = String::from("v=spf1");
    let mut redirects = 0;
    let mut explanations = 0;
    for term in text.get(kept.len()..)?.split(' ').filter(|term| !term.is_empty()) {
        match modifier(term) {
            Some((name, value)) if is_modifier(name, value) => {
                explanations += usize::from(name.eq_ignore_ascii_case("exp"));
                if !name.eq_ignore_ascii_case("redirect") {
                    continue;
                }
                redirects += 1;
            }
            None if is_directive(term) => {}
            _ => return None,
        }
        kept.push(' ');
        kept.push_str(term);
    }
    (redirects <= 1 && explanations <= 1).then_some(kept)
}

/// Splits a modifier at its equals sign, if the term is one.
fn modifier(term: &str) -> Option<(&str, &str)> {
    let (name, value) = term.split_once('=')?;
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    plain.then_some((name, value))
}

fn is_modifier(name: &str, value: &str) -> bool {
    let known = name.eq_ignore_ascii_case("redirect") || name.eq_ignore_ascii_case("exp");
    if known { is_domain_spec(value) } else { is_macro_string(value) }
}

fn is_directive(term: &str) -> bool {
    let unqualified = term.strip_prefix(['+', '-', '?', '~']).unwrap_or(term);
    let name_end = unqualified.find([':', '/']).unwrap_or(unqualified.len());
    let (name, arguments) = unqualified.split_at(name_end);
    let value = arguments.strip_prefix(':');
    match name.to_ascii_lowercase().as_str() {
        "all" => arguments.is_empty(),
        "include" | "exists" => value.is_some_and(is_domain_spec),
        "ptr" => arguments.is_empty() || value.is_some_and(is_domain_spec),
        "a" | "mx" => is_host(arguments),
        "ip4" => value.is_some_and(|network| is_network(network, |ip| ip.parse::<Ipv4Addr>().is_ok(), 32)),
        "ip6" => value.is_some_and(|network| is_network(network, |ip| ip.parse::<Ipv6Addr>().is_ok(), 128)),
        _ => false,
    }
}

/// Whether the arguments are those of `a` and `mx`: a domain, two lengths of networks, each optional.
fn is_host(arguments: &str) -> bool {
    let digits = |(_, length): &(&str, &str)| length.bytes().all(|byte| byte.is_ascii_digit());
    let mut rest = arguments;
    if let Some((head, length)) = rest.rsplit_once("//").filter(digits) {
        if !is_prefix_length(length, 128) {
            return false;
        }
        rest = head;
    }
    if let Some((head, length)) = rest.rsplit_once('/').filter(digits) {
        if !is_prefix_length(length, 32) {
            return false;
        }
        rest = head;
    }
    rest.is_empty() || rest.strip_prefix(':').is_some_and(is_domain_spec)
}

fn is_network(network: &str, is_address: impl Fn(&str) -> bool, max_length: u8) -> bool {
    match network.split_once('/') {
        Some((address, length)) => is_address(address) && is_prefix_length(length, max_length),
        None => is_address(network),
    }
}

fn is_prefix_length(text: &str, max_length: u8) -> bool {
    let canonical = text == "0" || text.starts_with(|c: char| matches!(c, '1'..='9'));
    canonical
        && text.bytes().all(|b| b.is_ascii_digit())
        && text.parse::<u8>().is_ok_and(|length| length <= max_length)
}

/// Whether a text is a name with macros in it, whose end is a macro or a top-level label.
fn is_domain_spec(text: &str) -> bool {
    is_macro_string(text) && (text.ends_with('}') || ends_in_top_label(text))
}

fn ends_in_top_label(text: &str) -> bool {
    let Some((_, label)) = text.strip_suffix('.').unwrap_or(text).rsplit_once('.') else { return false };
    !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && label.bytes().any(|byte| byte.is_ascii_alphabetic() || byte == b'-')
}

fn is_macro_string(text: &str) -> bool {
    let mut rest = text;
    while let Some((literal, after)) = rest.split_once('%') {
        if !is_visible(literal) {
            return false;
        }
        rest = match after.strip_prefix(['%', '_', '-']) {
            Some(after) => after,
            None => match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                Some((inner, after)) if is_macro(inner) => after,
                _ => return false,
            },
        };
    }
    is_visible(rest)
}

fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether a text is the inside of `%{…}`; the macros for explanations alone are not allowed here.
fn is_macro(inner: &str) -> bool {
    let mut characters = inner.chars();
    let known =
        characters.next().is_some_and(|character| "slodiphv".contains(character.to_ascii_lowercase()));
    let transformers = characters.as_str();
    let digits_end = transformers.find(|c: char| !c.is_ascii_digit()).unwrap_or(transformers.len());
    let (digits, tail) = transformers.split_at(digits_end);
    let counted = digits.is_empty() || digits.parse::<u8>().is_ok_and(|count| count > 0);
    let delimiters = tail.strip_prefix(['r', 'R']).unwrap_or(tail);
    known && counted && delimiters.chars().all(|c| ".-+,/_=".contains(c))
}
