//! Address lists in headers: names, addresses, groups and comments (RFC 5322, section 3.4), without ambiguity.
//!
//! An entry that could be read as two addresses gives none, so that the client and the verifier see the same.

use super::encoded_words;

/// The most people that are read of one header.
const MAX_PEOPLE: usize = 1000;

/// The longest address that is accepted.
const MAX_ADDRESS: usize = 320;

/// The longest display name in characters.
const MAX_NAME: usize = 255;

/// A person in a header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// The display name, decoded.
    pub name: Option<String>,
    /// The address as written, with an internationalised domain in A-labels.
    pub address: String,
}

/// The entries of an address list.
#[derive(Debug, Default)]
pub(super) struct People {
    /// Those with a readable address.
    pub(super) list: Vec<Person>,
    /// Whether an entry could be read as more than one address.
    pub(super) ambiguous: bool,
}

/// Reads an address list.
pub(super) fn read(value: &[u8]) -> People {
    let mut people = People::default();
    let mut entry = Entry::default();
    let mut position = 0;
    while let Some(&byte) = value.get(position) {
        if people.list.len() >= MAX_PEOPLE {
            return people;
        }
        position += 1;
        match byte {
            b'"' => {
                position = quoted(value, position, &mut entry.phrase);
                // A quoted local part outside of brackets: many parsers split it at its spaces.
                entry.doubtful |= value.get(position) == Some(&b'@');
            }
            b'(' => position = comment(value, position, &mut entry.comment),
            b'<' => position = entry.angle(value, position),
            b',' | b';' => std::mem::take(&mut entry).finish(&mut people),
            b':' if entry.address.is_none() && !entry.phrase.contains(&b'@') => entry = Entry::default(),
            b'\r' | b'\n' => entry.phrase.push(b' '),
            _ => entry.text(byte),
        }
    }
    entry.finish(&mut people);
    people
}

/// One mailbox while it is read.
#[derive(Default)]
struct Entry {
    phrase: Vec<u8>,
    comment: Vec<u8>,
    address: Option<Vec<u8>>,
    /// The text after the angle brackets.
    behind: Vec<u8>,
    doubtful: bool,
}

impl Entry {
    fn text(&mut self, byte: u8) {
        if self.address.is_some() { self.behind.push(byte) } else { self.phrase.push(byte) }
    }

    /// Reads an address in angle brackets.
    fn angle(&mut self, value: &[u8], start: usize) -> usize {
        let mut position = start;
        let mut in_quotes = false;
        let mut address = Vec::new();
        while let Some(&byte) = value.get(position) {
            position += 1;
            match byte {
                b'>' if !in_quotes => {
                    self.doubtful |= self.address.replace(address).is_some();
                    return position;
                }
                b'"' => in_quotes = !in_quotes,
                b'\\' if in_quotes => {
                    address.push(byte);
                    address.extend(value.get(position));
                    position += 1;
                    continue;
                }
                _ => {}
            }
            address.push(byte);
        }
        self.doubtful = true;
        self.address.get_or_insert(address);
        position
    }

    /// Adds the mailbox to the list, if it is one.
    fn finish(self, people: &mut People) {
        let doubtful = self.doubtful || self.behind.contains(&b'@');
        let (address, name) = match self.address {
            Some(address) => (without_route(&address).to_vec(), self.phrase),
            None => bare(&self.phrase),
        };
        let name = if name.trim_ascii().is_empty() { self.comment } else { name };
        let address = String::from_utf8_lossy(address.trim_ascii()).into_owned();
        let readable = address.contains('@')
            && address.len() <= MAX_ADDRESS
            && !address
                .contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | ','));
        people.ambiguous |= doubtful;
        if doubtful || !readable {
            return;
        }
        let name = encoded_words::cut(encoded_words::one_line(&encoded_words::decode(&name)), MAX_NAME);
        let name = Some(name).filter(|name| !name.is_empty());
        people.list.push(Person { name, address: with_ascii_domain(address) });
    }
}

/// An internationalised domain in A-labels, in which no domain looks like another.
fn with_ascii_domain(address: String) -> String {
    let Some((local, domain)) = address.rsplit_once('@').filter(|(_, domain)| !domain.is_ascii()) else {
        return address;
    };
    let visible = |c: char| if c.is_ascii() { c } else { char::REPLACEMENT_CHARACTER };
    let domain = idna::domain_to_ascii(domain).unwrap_or_else(|_| domain.chars().map(visible).collect());
    format!("{local}@{domain}")
}

/// An address without angle brackets: the only word with an `@`; the other words are a name.
fn bare(phrase: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut address = Vec::new();
    let mut name = Vec::new();
    for word in phrase.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        if word.contains(&b'@') && !word.starts_with(b"=?") {
            if !address.is_empty() {
                return (Vec::new(), phrase.to_vec());
            }
            address = word.to_vec();
        } else {
            name.extend_from_slice(word);
            name.push(b' ');
        }
    }
    (address, name)
}

/// The address without an old source route, `@relay,@relay:name@host`.
fn without_route(address: &[u8]) -> &[u8] {
    let address = address.trim_ascii();
    if address.first() != Some(&b'@') {
        return address;
    }
    address
        .iter()
        .position(|&byte| byte == b':')
        .and_then(|colon| address.get(colon + 1..))
        .unwrap_or(address)
}

/// Reads a quoted string into `text`, and says where it ends.
fn quoted(value: &[u8], start: usize, text: &mut Vec<u8>) -> usize {
    let mut position = start;
    while let Some(&byte) = value.get(position) {
        position += 1;
        match byte {
            b'"' => return position,
            b'\\' => {
                text.extend(value.get(position));
                position += 1;
            }
            b'\r' | b'\n' => {}
            _ => text.push(byte),
        }
    }
    position
}

/// Reads a comment, in which comments may be nested, into `text`, and says where it ends.
fn comment(value: &[u8], start: usize, text: &mut Vec<u8>) -> usize {
    let mut position = start;
    let mut depth = 1_usize;
    while let Some(&byte) = value.get(position) {
        position += 1;
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return position;
                }
            }
            b'\\' => {
                text.extend(value.get(position));
                position += 1;
                continue;
            }
            _ => {}
        }
        text.push(byte);
    }
    position
}
