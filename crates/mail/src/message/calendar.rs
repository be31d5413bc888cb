//! Calendar invitations: the few properties of an iCalendar part that describe its event.
//!
//! Tolerant and bounded: it reads the first event only, and treats every value as text.

/// The most bytes that are read.
const MAX_BYTES: usize = 256 * 1024;

/// The longest value in characters.
const MAX_VALUE: usize = 1000;

/// What a calendar part says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invitation {
    /// The method: `REQUEST`, `CANCEL`, `REPLY`, …, in upper case.
    pub method: Option<String>,
    /// The id of the event.
    pub uid: Option<String>,
    /// The version of the event.
    pub sequence: Option<u32>,
    /// Its title.
    pub summary: Option<String>,
    /// When it begins, as written there.
    pub start: Option<String>,
    /// When it ends, as written there.
    pub end: Option<String>,
    /// The organizer's address, without `mailto:`.
    pub organizer: Option<String>,
}

/// Reads a calendar; nothing when it has no event.
pub fn read(content: &str) -> Option<Invitation> {
    let mut end = content.len().min(MAX_BYTES);
    while !content.is_char_boundary(end) {
        end -= 1;
    }
    let mut invitation = Invitation::default();
    let mut components: Vec<String> = Vec::new();
    let mut events = 0;
    for line in unfold(content.get(..end).unwrap_or_default()) {
        let Some((name, value)) = split(&line) else { continue };
        match name.as_str() {
            "BEGIN" if components.len() < 16 => {
                let component = value.trim().to_ascii_uppercase();
                events += usize::from(component == "VEVENT");
                components.push(component);
            }
            "END" => drop(components.pop()),
            "METHOD" if components.len() == 1 => {
                invitation.method = text(value).map(|value| value.to_ascii_uppercase());
            }
            _ if events == 1 && components.last().is_some_and(|component| component == "VEVENT") => {
                invitation.take(&name, value);
            }
            _ => {}
        }
    }
    (events > 0).then_some(invitation)
}

impl Invitation {
    /// Takes one line of the event.
    fn take(&mut self, name: &str, value: &str) {
        let slot = match name {
            "UID" => &mut self.uid,
            "SUMMARY" => &mut self.summary,
            "DTSTART" => &mut self.start,
            "DTEND" => &mut self.end,
            "ORGANIZER" => {
                let address = value.trim();
                let scheme = address.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("mailto:"));
                self.organizer = text(address.get(scheme.map_or(0, str::len)..).unwrap_or_default());
                return;
            }
            "SEQUENCE" => {
                self.sequence = value.trim().parse().ok();
                return;
            }
            _ => return,
        };
        if slot.is_none() {
            *slot = text(value);
        }
    }
}

/// The lines with their continuations joined.
fn unfold(content: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in content.lines() {
        match (line.strip_prefix([' ', '\t']), lines.last_mut()) {
            (Some(continued), Some(last)) => last.push_str(continued),
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}

/// The name of a line in upper case and its value; parameters are skipped, including quoted colons.
fn split(line: &str) -> Option<(String, &str)> {
    let mut in_quotes = false;
    let colon = line.char_indices().find_map(|(index, c)| {
        in_quotes ^= c == '"';
        (c == ':' && !in_quotes).then_some(index)
    })?;
    let name = line.get(..colon)?.split(';').next()?.trim().to_ascii_uppercase();
    Some((name, line.get(colon + 1..)?))
}

/// A value without its escapes, on one line.
fn text(value: &str) -> Option<String> {
    let mut plain = String::with_capacity(value.len().min(MAX_VALUE));
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some('n' | 'N') => plain.push(' '),
                Some(escaped) => plain.push(escaped),
                None => {}
            },
            _ => plain.push(c),
        }
    }
    let plain = super::encoded_words::cut(super::encoded_words::one_line(&plain), MAX_VALUE);
    Some(plain).filter(|plain| !plain.is_empty())
}
