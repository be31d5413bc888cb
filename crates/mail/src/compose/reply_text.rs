//! Tells the text that the author of a reply or forward wrote from the message that it quotes.
//!
//! Mail has no field for that; the marks are those that clients write: lines that begin with `>`, a `<blockquote>`,
//! and a line such as "On Monday, Ann wrote:" above it.

use super::quote::{self, BodyText};
use crate::safe_text::SafeText;

/// How lines begin that say who wrote the quoted text, where that takes two lines.
const ATTRIBUTIONS: [&str; 5] = ["On ", "Am ", "Le ", "El ", "Il "];

/// A reply or a forward, cut into what is quoted above the author's text, that text, and what is quoted below it. The three in a
/// row are the whole body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyText<'a> {
    /// What stands above the author's text; empty unless the author wrote below the quote.
    pub above: &'a str,
    /// The author's text.
    pub own: &'a str,
    /// What stands below the author's text.
    pub below: &'a str,
}

impl<'a> ReplyText<'a> {
    /// Cuts a body. Without a quote, all of it is the author's.
    ///
    /// The author's text is what stands above the first quote. Where nothing does, it is what follows the last one.
    pub fn of(body: BodyText<'a>) -> Self {
        let (whole, found) = match body {
            BodyText::Text(text) => (text, quote_in_text(text)),
            BodyText::Html(html) => (html, quote_in_html(html)),
        };
        if let Some((_, BodyText::Text(original) | BodyText::Html(original))) = quote::split(body) {
            let (own, below) = whole.split_at(whole.len() - original.len());
            return Self { above: "", own, below };
        }
        let Some((start, end)) = found else { return Self { above: "", own: whole, below: "" } };
        let is_blank = |part: &str| match body {
            BodyText::Text(_) => part.trim().is_empty(),
            BodyText::Html(_) => {
                SafeText::from_html(part).as_str().trim().is_empty() && !part.contains("<img")
            }
        };
        if is_blank(&whole[..start]) && !is_blank(&whole[end..]) {
            return Self { above: &whole[..end], own: &whole[end..], below: "" };
        }
        Self { above: "", own: &whole[..start], below: &whole[start..] }
    }

    /// Whether anything is quoted.
    pub fn has_quote(&self) -> bool {
        !(self.above.is_empty() && self.below.is_empty())
    }

    /// What is quoted.
    pub fn quoted(&self) -> &'a str {
        if self.below.is_empty() { self.above } else { self.below }
    }

    /// The body with another text of the author, of the same format as the body.
    pub fn with_own(&self, own: &str, is_html: bool) -> String {
        if is_html {
            return format!("{}{own}{}", self.above, self.below);
        }
        let parts = [self.above.trim_end(), own.trim(), self.below.trim_start_matches(['\r', '\n'])];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }
}

/// Where the quoted lines begin, with the line that says who wrote them, and where the last of them ends.
fn quote_in_text(text: &str) -> Option<(usize, usize)> {
    let (mut lines, mut at) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        lines.push((at, line));
        at += line.len();
    }
    let is_quoted = |line: &&(usize, &str)| line.1.starts_with('>');
    let end = lines.iter().rfind(is_quoted).map(|(at, line)| at + line.len())?;
    let first = lines.iter().position(|line| is_quoted(&line))?;
    let mut start = lines.get(first)?.0;
    let above: Vec<&(usize, &str)> =
        lines.iter().take(first).rev().skip_while(|line| line.1.trim().is_empty()).take(2).collect();
    if let Some((at, _)) = above.first().filter(|line| line.1.trim_end().ends_with(':')) {
        start = *at;
        let is_one_line = ATTRIBUTIONS.iter().any(|start| above[0].1.starts_with(start));
        let begins = |line: &&&(usize, &str)| ATTRIBUTIONS.iter().any(|start| line.1.starts_with(start));
        if let Some((at, _)) = above.get(1).filter(begins).filter(|_| !is_one_line) {
            start = *at;
        }
    }
    Some((start, end))
}

/// Where the first `<blockquote>` begins, with the block that says who wrote it, and where the last one ends.
fn quote_in_html(html: &str) -> Option<(usize, usize)> {
    const CLOSING: &str = "</blockquote>";
    let lower = html.to_ascii_lowercase();
    let mut start = lower.find("<blockquote")?;
    let end = lower.rfind(CLOSING).map_or(html.len(), |at| at + CLOSING.len()).max(start);
    let head = lower[..start].trim_end();
    let opening = if head.ends_with("</div>") {
        head.rfind("<div")
    } else if head.ends_with("</p>") {
        head.rfind("<p>").max(head.rfind("<p "))
    } else {
        head.rfind('>').map(|at| at + 1)
    };
    let opening = opening.unwrap_or_default();
    if SafeText::from_html(&html[opening..start]).as_str().trim_end().ends_with(':') {
        start = opening;
    }
    Some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &str) -> (&str, &str, &str) {
        let ReplyText { above, own, below } = ReplyText::of(BodyText::Text(body));
        assert_eq!(format!("{above}{own}{below}"), body);
        (above, own, below)
    }

    fn html(body: &str) -> (&str, &str, &str) {
        let ReplyText { above, own, below } = ReplyText::of(BodyText::Html(body));
        assert_eq!(format!("{above}{own}{below}"), body);
        (above, own, below)
    }

    #[test]
    fn text_is_cut_at_the_quote() {
        assert_eq!(text("Just this:\nand that"), ("", "Just this:\nand that", ""));
        assert_eq!(
            text("Yes.\n\nOn Monday, Ann wrote:\n> Why?\n"),
            ("", "Yes.\n\n", "On Monday, Ann wrote:\n> Why?\n")
        );
        let wrapped = "Yes.\nOn Monday, 3 May 2026 at 10:00,\nAnn <ann@x.test> wrote:\n\n> Why?";
        assert_eq!(text(wrapped).1, "Yes.\n");
        assert_eq!(text("> Why?\n> So?\n\nBecause.").1, "\nBecause.");
        assert_eq!(text("> Why?").1, "");
        assert_eq!(text("See\n\n> Why?\n\nand more").1, "See\n\n", "the rest is not told from the quote");
    }

    #[test]
    fn html_is_cut_at_the_quote() {
        assert_eq!(html("<p>Yes</p>").1, "<p>Yes</p>");
        let reply = "<div>Yes</div><div>On Monday, Ann wrote:</div><BLOCKQUOTE>Why?</BLOCKQUOTE>";
        assert_eq!(
            html(reply),
            ("", "<div>Yes</div>", "<div>On Monday, Ann wrote:</div><BLOCKQUOTE>Why?</BLOCKQUOTE>")
        );
        assert_eq!(html("Yes<br>Ann wrote:<blockquote>x</blockquote>").1, "Yes<br>");
        assert_eq!(html("<p>Yes</p><blockquote>x</blockquote>").1, "<p>Yes</p>");
        assert_eq!(html("<div><br></div><blockquote>x</blockquote><p>Yes</p>").1, "<p>Yes</p>");
        assert_eq!(html("Ünï:<blockquote>x").2, "Ünï:<blockquote>x");
    }

    #[test]
    fn the_quote_stays_when_the_text_changes() {
        let reply = "Yes.\n\nOn Monday, Ann wrote:\n> Why?\n";
        let cut = ReplyText::of(BodyText::Text(reply));
        assert_eq!(cut.with_own("No!\n", false), "No!\n\nOn Monday, Ann wrote:\n> Why?\n");
        assert!(cut.has_quote() && cut.quoted().starts_with("On Monday"));
        let below = ReplyText::of(BodyText::Text("> Why?\n\nYes."));
        assert_eq!(below.with_own("No!", false), "> Why?\n\nNo!");
        let html = ReplyText::of(BodyText::Html("<b>Yes</b><blockquote>x</blockquote>"));
        assert_eq!(html.with_own("<p>No</p>", true), "<p>No</p><blockquote>x</blockquote>");
        assert!(!ReplyText::of(BodyText::Text("Yes")).has_quote());
        let forward = "See:\n> a\n\n---------- Forwarded message ----------\nFrom: Ann\n\n> Why?";
        let forward = ReplyText::of(BodyText::Text(forward));
        assert_eq!((forward.own, forward.below.len()), ("See:\n> a\n\n", 57));
    }
}
