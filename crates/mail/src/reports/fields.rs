//! Lines of the form `Name: value`, as in headers and in the fields of a report.

use memchr::memchr;

/// Bytes of one block of lines that are read.
const MAX_BYTES: usize = 100 * 1024;

/// Lines of one block that are read.
const MAX_LINES: usize = 2000;

/// The longest value that is kept, in characters.
const MAX_VALUE_CHARS: usize = 1000;

/// The longest address that is kept, in bytes.
const MAX_ADDRESS_BYTES: usize = 320;

/// One line, with those that continue it.
#[derive(Debug)]
pub(super) struct Field {
    /// The name in lower case.
    pub(super) name: String,
    /// The value on one line.
    pub(super) value: String,
}

/// The headers at the beginning of some bytes, and where the body begins.
pub(super) fn headers(bytes: &[u8]) -> (Vec<Field>, usize) {
    let mut fields = Vec::new();
    let mut at = 0;
    for (line, length) in lines(bytes) {
        at += length;
        if line.is_empty() {
            break;
        }
        add_line(&mut fields, line);
    }
    (fields, at)
}

/// The groups of fields that blank lines separate. A group without a recipient belongs to the one before it.
pub(super) fn groups(bytes: &[u8]) -> Vec<Vec<Field>> {
    let mut groups: Vec<Vec<Field>> = vec![Vec::new()];
    let mut fresh = false;
    for (line, _) in lines(bytes) {
        if line.trim_ascii().is_empty() {
            fresh = true;
            continue;
        }
        let begins = field(line).is_some_and(|field| {
            matches!(field.name.as_str(), "final-recipient" | "original-recipient" | "reporting-mta")
        });
        let same = |group: &Vec<Field>| {
            field(line).is_some_and(|field| group.iter().any(|known| known.name == field.name))
        };
        if begins && (fresh || groups.last().is_some_and(same)) {
            groups.push(Vec::new());
        }
        fresh = false;
        if let Some(group) = groups.last_mut() {
            add_line(group, line);
        }
    }
    groups
}

/// Lines without their ends, and how long each was with its end.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let mut rest = bytes.get(..MAX_BYTES).unwrap_or(bytes);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let (line, after) = rest.split_at_checked(length)?;
        rest = after;
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        Some((text.strip_suffix(b"\r").unwrap_or(text), length))
    })
    .take(MAX_LINES)
}

/// Adds a line as a field, or to the field that it continues.
fn add_line(fields: &mut Vec<Field>, line: &[u8]) {
    if line.starts_with(b" ") || line.starts_with(b"\t") {
        if let Some(last) = fields.last_mut() {
            last.value.push(' ');
            last.value.push_str(String::from_utf8_lossy(line).trim());
        }
    } else if let Some(field) = field(line) {
        fields.push(field);
    }
}

fn field(line: &[u8]) -> Option<Field> {
    let colon = memchr(b':', line)?;
    let (name, value) = line.split_at_checked(colon)?;
    let name = name.trim_ascii_end();
    let plain = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    plain.then(|| Field {
        name: String::from_utf8_lossy(name).to_ascii_lowercase(),
        value: String::from_utf8_lossy(value.get(1..).unwrap_or_default()).trim().to_owned(),
    })
}

/// A text on one line, without control characters, of bounded length.
pub(super) fn clean(text: &str) -> String {
    let visible = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let bounded: String = visible.take(MAX_VALUE_CHARS).collect();
    bounded.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The address in a value such as `<a@b>` or `a@b`.
pub(super) fn address(text: &str) -> Option<String> {
    let inner =
        text.split_once('<').map_or(text, |(_, rest)| rest.split_once('>').map_or(rest, |(inner, _)| inner));
    let bare = inner.trim();
    let plausible = bare.len() <= MAX_ADDRESS_BYTES
        && bare.contains('@')
        && !bare.contains(|c: char| c.is_control() || c.is_whitespace() || "<>".contains(c));
    plausible.then(|| bare.to_owned())
}

/// The id in a value such as `<id@host>`.
pub(super) fn message_id(text: &str) -> Option<String> {
    let inner =
        text.split_once('<').map_or(text, |(_, rest)| rest.split_once('>').map_or(rest, |(inner, _)| inner));
    let bare = inner.trim();
    let plausible = (1..=MAX_VALUE_CHARS).contains(&bare.len()) && !bare.contains(|c: char| c.is_control());
    plausible.then(|| bare.to_owned())
}
