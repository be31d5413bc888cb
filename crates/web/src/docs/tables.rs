//! The tables of the documentation page.

use super::{html::Html, reference::Response};

/// One error of a call.
pub(super) struct ErrorRow<'a> {
    pub(super) status: &'a str,
    pub(super) code: &'a str,
    message: &'a str,
    /// Whether it can carry `Retry-After`.
    waits: bool,
}

/// A table with a head.
pub(super) fn table(html: &mut Html, columns: &[&str], rows: impl FnOnce(&mut Html)) {
    html.put("table", |html| {
        html.put("thead", |html| {
            html.put("tr", |html| {
                for column in columns {
                    html.put_with("th", &[("scope", "col")], |html| html.text(column));
                }
            });
        });
        html.put("tbody", rows);
    });
}

/// A row with a header cell.
pub(super) fn row(html: &mut Html, name: &str, cells: &[&str]) {
    html.put("tr", |html| {
        html.put_with("th", &[("scope", "row")], |html| html.marked(name));
        for cell in cells {
            html.marked_line("td", cell);
        }
    });
}

/// The errors behind a status; none for a success.
pub(super) fn error_rows<'a>(response: &Response<'a>) -> Vec<ErrorRow<'a>> {
    if !response.is_error() {
        return Vec::new();
    }
    let waits = response.headers().iter().any(|(name, _)| *name == "Retry-After");
    let row = |(code, message)| ErrorRow { status: response.status, code, message, waits };
    response.codes().into_iter().map(row).collect()
}

/// A table of errors.
pub(super) fn error_table<'a>(html: &mut Html, rows: impl Iterator<Item = ErrorRow<'a>>) {
    table(html, &["Status", "Code", "Message"], |html| {
        for row in rows {
            html.put("tr", |html| {
                html.put("td", |html| html.line("span.code", row.status));
                html.put("td", |html| html.line("code", row.code));
                html.put("td", |html| {
                    html.marked(row.message);
                    if row.waits {
                        html.text(" ");
                        html.line("span.kind", "with Retry-After");
                    }
                });
            });
        }
    });
}
