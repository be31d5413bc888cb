//! The email addresses of a text.

use std::ops::Range;

use memchr::memchr_iter;

/// Addresses that are taken from one text.
pub const MAX_ADDRESSES: usize = 1000;

const MAX_LOCAL_BYTES: usize = 64;
const MAX_DOMAIN_BYTES: usize = 253;

/// Where the email addresses of a text stand, in order: at most [`MAX_ADDRESSES`].
pub fn addresses(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut last_end = 0;
    for at in memchr_iter(b'@', text.as_bytes()) {
        let Some(range) = address(text, at, last_end) else { continue };
        last_end = range.end;
        found.push(range);
        if found.len() == MAX_ADDRESSES {
            break;
        }
    }
    found
}

fn address(text: &str, at: usize, from: usize) -> Option<Range<usize>> {
    let is_local = |byte: &u8| byte.is_ascii_alphanumeric() || b"._%+-'!#&*=?^{|}~/`$".contains(byte);
    let before = &text.as_bytes()[from..at];
    let mut length = before.iter().rev().take(MAX_LOCAL_BYTES).take_while(|byte| is_local(byte)).count();
    // What quotes or joins an address is no part of it.
    while length > 0
        && !before[before.len() - length].is_ascii_alphanumeric()
        && before[before.len() - length] != b'_'
    {
        length -= 1;
    }
    let local = &text[at - length..at];
    let local = local.rsplit(['=', '/', '?', '&', '\'', '|']).next().unwrap_or_default();
    let rest = &text[at + 1..text.floor_char_boundary(text.len().min(at + 1 + MAX_DOMAIN_BYTES))];
    let end = rest.find(|character: char| !character.is_alphanumeric() && !matches!(character, '.' | '-'));
    let domain = rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', '-']);
    let (name, top) = domain.rsplit_once('.')?;
    let valid = !local.is_empty()
        && !local.ends_with('.')
        && !name.is_empty()
        && !domain.starts_with(['.', '-'])
        && !domain.contains("..")
        && top.chars().count() >= 2
        && !top.starts_with(|first: char| first.is_ascii_digit());
    valid.then(|| at - local.len()..at + 1 + domain.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_out_of_text() {
        let text = "Anna <anna.b+x@Example.org>, bob@münchen.example. mailto:c@d.io?x=1 @handle a@b 'e@f.co' 联系g@h.cn、x=i@j.de";
        let found: Vec<&str> = addresses(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(
            found,
            ["anna.b+x@Example.org", "bob@münchen.example", "c@d.io", "e@f.co", "g@h.cn", "i@j.de"]
        );
    }

    #[test]
    fn they_are_bounded() {
        assert_eq!(addresses(&"a@b.cd ".repeat(2000)).len(), MAX_ADDRESSES);
        assert!(addresses(&"@".repeat(10_000)).is_empty());
    }
}
