//! Suppressions as CSV (RFC 4180): lists of other services are taken in, and what is suppressed here is carried out.

use model::suppressions::{NewSuppression, Suppression};

use crate::core::error::{Error, Result};

/// Lines of one import.
pub const MAX_LINES: usize = 10_000;
/// Bytes of one import.
const MAX_BYTES: usize = 4 << 20;

/// Writes suppressions, with a line that names the columns.
pub fn write(all: &[Suppression]) -> String {
    let mut text = String::from("address,reason,scope,mailbox_id,note,created_at\r\n");
    for one in all {
        let mailbox = one.mailbox_id.as_ref().map_or("", |id| id.as_str());
        let (note, since) = (one.note.as_deref().unwrap_or_default(), one.created_at.to_string());
        let cells = [&one.address, one.reason.as_str(), one.scope.as_str(), mailbox, note, &since];
        text.push_str(&cells.map(cell).join(","));
        text.push_str("\r\n");
    }
    text
}

/// A cell. A spreadsheet must not take a text from mail for a formula.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Reads addresses: those of the column `address` or `email`, or else of the first one, with the notes of a column `note`.
pub fn read(bytes: &[u8]) -> Result<Vec<NewSuppression>> {
    if bytes.len() > MAX_BYTES {
        return Err(Error::invalid("file", "has more than 4 MB"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Error::invalid("file", "is not text in UTF-8"))?;
    let mut rows = rows(text.trim_start_matches('\u{feff}'))?;
    let (mut address, mut note) = (0, None);
    if let Some(first) = rows.first()
        && !first.cells.iter().any(|cell| cell.contains('@'))
    {
        let find = |names: &[&str]| {
            first.cells.iter().position(|cell| names.contains(&cell.trim().to_lowercase().as_str()))
        };
        address = find(&["address", "email", "e-mail", "email address", "recipient"]).unwrap_or(0);
        note = find(&["note", "notes", "comment"]);
        rows.remove(0);
    }
    let new = rows.into_iter().map(|row| {
        let text = row.cells.get(address).map(|cell| cell.trim()).unwrap_or_default();
        if !text.contains('@') {
            return Err(Error::invalid("file", format!("line {}: {text:?} is not an address", row.line)));
        }
        let note =
            note.and_then(|column: usize| row.cells.get(column)).filter(|note| !note.trim().is_empty());
        let note = note.map(|note| note.chars().take(500).collect());
        Ok(NewSuppression { address: text.to_owned(), scope: None, mailbox_id: None, note })
    });
    new.collect()
}

/// A row, and the line of the file that it begins on.
struct CsvRow {
    line: usize,
    cells: Vec<String>,
}

fn rows(text: &str) -> Result<Vec<CsvRow>> {
    let mut rows = Vec::new();
    let (mut line, mut characters) = (1, text.chars().peekable());
    while characters.peek().is_some() {
        let mut row = CsvRow { line, cells: vec![String::new()] };
        let mut quoted = false;
        while let Some(character) = characters.next() {
            line += usize::from(character == '\n');
            let cell_is_empty = row.cells.last().is_some_and(String::is_empty);
            match character {
                '"' if quoted && characters.peek() == Some(&'"') => {
                    characters.next();
                    push(&mut row, '"');
                }
                '"' if quoted => quoted = false,
                '"' if cell_is_empty => quoted = true,
                ',' | ';' | '\t' if !quoted => row.cells.push(String::new()),
                '\n' if !quoted => break,
                '\r' if !quoted => {}
                other => push(&mut row, other),
            }
        }
        if quoted {
            return Err(Error::invalid("file", format!("line {}: a quote is not closed", row.line)));
        }
        if row.cells.iter().any(|cell| !cell.trim().is_empty()) {
            rows.push(row);
        }
        if rows.len() > MAX_LINES + 1 {
            return Err(Error::invalid("file", format!("has more than {MAX_LINES} lines")));
        }
    }
    Ok(rows)
}

fn push(row: &mut CsvRow, character: char) {
    if let Some(cell) = row.cells.last_mut() {
        cell.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(text: &str) -> Vec<(String, Option<String>)> {
        read(text.as_bytes()).unwrap().into_iter().map(|one| (one.address, one.note)).collect()
    }

    #[test]
    fn lists_of_several_shapes_are_read() {
        let plain = |address: &str| (address.to_owned(), None);
        assert_eq!(addresses("a@x.test\nb@x.test"), [plain("a@x.test"), plain("b@x.test")]);
        assert_eq!(addresses("\u{feff}Email;Note\r\na@x.test;\r\n\r\n"), [plain("a@x.test")]);
        let noted = ("a@x.test".to_owned(), Some("said \"no\", twice".to_owned()));
        assert_eq!(addresses("note,address\n\"said \"\"no\"\", twice\",a@x.test\n"), [noted]);
        assert_eq!(addresses(""), []);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, said) in [
            ("a@x.test\nnobody\n", "line 2"),
            ("address\na@x.test\n\"b@x.test\n", "line 3"),
            (&"a@x.test\n".repeat(MAX_LINES + 2), "more than 10000 lines"),
        ] {
            let refused = read(text.as_bytes()).unwrap_err();
            assert!(refused.details()[0].message.contains(said), "{refused:?}");
        }
        assert!(read(b"\xff").is_err());
    }

    #[test]
    fn cells_are_quoted_and_are_no_formulas() {
        assert_eq!(cell("a@x.test"), "a@x.test");
        assert_eq!(cell("=1+1"), "'=1+1");
        assert_eq!(cell("a, \"b\""), "\"a, \"\"b\"\"\"");
    }
}
