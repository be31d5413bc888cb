//! Taking the last action back: a button beside the note that reports it, on the page as a toast or, without JavaScript, as
//! a form. What it sends says which emails were where, or which send has not left yet; the operations check it like any
//! other input.

use std::collections::BTreeMap;

use model::EmailId;
use operations::{Error, Result};
use percent_encoding::percent_decode_str;
use serde::Serialize;

use super::links::{encoded, safe_next};

/// The most bytes of an undo: it travels in a cookie or a header, of which proxies take about 4 KiB.
const MAX_DATA_BYTES: usize = 3000;
/// Emails that one undo moves.
const MAX_EMAILS: usize = 500;

/// How an action is taken back: a form of the console with one field, `data`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Undo {
    pub(super) action: String,
    pub(super) data: String,
}

impl Undo {
    /// As part of a cookie, whose other parts are percent-encoded.
    pub(super) fn to_text(&self) -> String {
        format!("{}!{}", self.action, self.data)
    }

    /// Reads what `to_text` wrote; `None` when it is something else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (action, data) = text.split_once('!')?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:|%~".contains(c);
        let is_known = action.starts_with("/console/m/") || action.starts_with("/console/reviews/");
        let is_undo = is_known && action.ends_with("/undo");
        let is_safe = is_undo && safe_next(action) == action && data.chars().all(is_plain);
        (is_safe && text.len() <= MAX_DATA_BYTES)
            .then(|| Self { action: action.to_owned(), data: data.to_owned() })
    }
}

/// What came of an action: where to go, what to say, and how to take it back.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) target: String,
    pub(super) said: String,
    pub(super) undo: Option<Undo>,
}

impl Outcome {
    pub(super) fn said(said: String) -> Self {
        Self { said, ..Self::default() }
    }
}

impl From<(String, String)> for Outcome {
    fn from((target, said): (String, String)) -> Self {
        Self { target, said, undo: None }
    }
}

/// Emails by the folders that they go back to.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct Moves(BTreeMap<String, Vec<EmailId>>);

impl<'a> FromIterator<(&'a str, EmailId)> for Moves {
    fn from_iter<I: IntoIterator<Item = (&'a str, EmailId)>>(all: I) -> Self {
        let mut moves = Self::default();
        for (folder, id) in all {
            moves.0.entry(folder.to_owned()).or_default().push(id);
        }
        moves
    }
}

impl Moves {
    /// The undo that moves them back; none when there is nothing to move, or too much for a cookie.
    pub(super) fn undo(&self, mailbox: &str) -> Option<Undo> {
        let folder = |(folder, ids): (&String, &Vec<EmailId>)| {
            let ids: Vec<&str> = ids.iter().map(EmailId::as_str).collect();
            format!("{}:{}", encoded(folder), ids.join("."))
        };
        let data = self.0.iter().map(folder).collect::<Vec<_>>().join("|");
        let undo = Undo { action: format!("/console/m/{}/undo", encoded(mailbox)), data };
        (!self.0.is_empty() && undo.to_text().len() <= MAX_DATA_BYTES).then_some(undo)
    }

    /// Reads the field of such an undo.
    pub(super) fn parse(data: &str) -> Result<Self> {
        let wrong = || Error::invalid("undo", "this can no longer be undone");
        let mut moves = Self::default();
        for part in data.split('|') {
            let (folder, ids) = part.split_once(':').ok_or_else(wrong)?;
            let folder = percent_decode_str(folder).decode_utf8().map_err(|_| wrong())?;
            let ids = ids.split('.').filter(|id| !id.is_empty()).map(EmailId::from);
            moves.0.entry(folder.into_owned()).or_default().extend(ids);
        }
        let count: usize = moves.0.values().map(Vec::len).sum();
        if count == 0 || count > MAX_EMAILS { Err(wrong()) } else { Ok(moves) }
    }

    pub(super) fn into_folders(self) -> impl Iterator<Item = (String, Vec<EmailId>)> {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves(count: usize) -> Moves {
        let id = |index: usize| EmailId::from(format!("eml_{index:032}").as_str());
        (0..count).map(|index| (if index % 2 == 0 { "inbox" } else { "a_b c.ü" }, id(index))).collect()
    }

    // rules: CONSOLE-19
    #[test]
    fn an_undo_reads_what_it_wrote_and_nothing_else() {
        let undo = moves(3).undo("mbx_1").unwrap();
        assert_eq!(Undo::parse(&undo.to_text()), Some(undo.clone()));
        assert_eq!(Moves::parse(&undo.data).unwrap(), moves(3));
        assert!(moves(0).undo("mbx_1").is_none() && moves(500).undo("mbx_1").is_none());
        for bad in [
            "",
            "x",
            "/console/logout!x",
            "//evil.test/undo!x",
            "/console/m/a/act!x",
            "/console/m/a/undo!<b>",
        ] {
            assert_eq!(Undo::parse(bad), None, "{bad}");
        }
        for bad in ["", "inbox", "inbox:", "|", "%ff:eml_1"] {
            assert!(Moves::parse(bad).is_err(), "{bad}");
        }
    }
}
