//! The text of a message that is its author's, as far as the marks of mail clients tell: without the quoted message,
//! the line above it that says who wrote it, and the signature.
//!
//! What is quoted is in memory already, as the message that it was, and a signature is the same in all messages of its
//! author. Both would cost time to embed and blur what a passage is about. A forwarded message stays: it may be news.

use mail::compose::{
    quote::{self, BodyText},
    reply_text::ReplyText,
};

/// The line above a signature. Safe text has no spaces at the end of a line.
const SIGNATURE_LINE: &str = "--";
/// The most lines of a signature. A longer text is none: some separate sections with such a line.
const MAX_SIGNATURE_LINES: usize = 15;

/// What the author wrote; all of the text where that is nothing.
pub(super) fn own_text(text: &str) -> String {
    let (written, forwarded) = match quote::split(BodyText::Text(text)) {
        Some((BodyText::Text(comment), BodyText::Text(original))) => (comment, original),
        _ => (text, ""),
    };
    let ReplyText { above, own, below } = ReplyText::of(BodyText::Text(written));
    let mut lines = answers(above);
    lines.extend(without_signature(own.lines().collect()));
    lines.extend(without_signature(answers(below)));
    lines.extend(forwarded.lines().filter(|line| !is_quoted(line)));
    if lines.iter().all(|line| line.is_empty()) {
        lines = text.lines().map(|line| line.trim_start_matches(['>', ' '])).collect();
    }
    lines.join("\n")
}

fn is_quoted(line: &str) -> bool {
    line.starts_with('>')
}

/// What stands between and after the lines of a quote, which begins with the line that says who wrote it.
fn answers(quote: &str) -> Vec<&str> {
    quote.lines().skip_while(|line| !is_quoted(line)).filter(|line| !is_quoted(line)).collect()
}

fn without_signature(mut lines: Vec<&str>) -> Vec<&str> {
    if let Some(start) = lines.iter().rposition(|line| line.trim_end() == SIGNATURE_LINE)
        && lines.len() - start <= MAX_SIGNATURE_LINES + 1
    {
        lines.truncate(start);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_marks_stays_whole() {
        for text in
            ["", "Hello Ann,\n\nsee you on Monday:\n- at noon\n- in Porto\n\nBob", "--", "a --\nb -- c"]
        {
            assert_eq!(own_text(text), text);
        }
    }

    #[test]
    fn quotes_are_left_out_with_the_line_above_them() {
        let reply =
            "Yes, on Monday.\n\nOn 3 May 2026, Ann <ann@x.test> wrote:\n> When do we meet?\n>> Soon.\n";
        assert_eq!(own_text(reply).trim(), "Yes, on Monday.");
        let wrapped = "Yes.\n\nOn Sunday, 3 May 2026 at 10:00,\nAnn <ann@x.test> wrote:\n\n> When?";
        assert_eq!(own_text(wrapped).trim(), "Yes.");
        assert_eq!(own_text("Am 3. Mai schrieb Ann:\n> Wann?\n\nMontag.").trim(), "Montag.");
    }

    #[test]
    fn answers_between_quotes_stay() {
        let inline = "Hello,\n\nAnn wrote:\n> When?\nMonday.\n> Where?\nIn Porto.\n--\nBob\nExample Ltd";
        assert_eq!(own_text(inline), "Hello,\n\nMonday.\nIn Porto.");
        let below = "Ann wrote:\n> When?\nMonday.\n> Where?\n\nIn Porto.";
        assert_eq!(own_text(below), "Monday.\n\nIn Porto.");
    }

    #[test]
    fn signatures_are_left_out() {
        assert_eq!(own_text("See you.\n\n--\nBob\n+351 000"), "See you.\n");
        assert_eq!(own_text("See you.\n-- \nBob\n\nAnn wrote:\n> When?"), "See you.");
        let sections = format!("One\n--\n{}", "Two\n".repeat(40));
        assert_eq!(own_text(&sections), sections.trim_end());
        assert_eq!(own_text("One\n--\nTwo\n--\nBob"), "One\n--\nTwo");
    }

    #[test]
    fn a_forwarded_message_stays() {
        let forward = "For you.\n--\nBob\n\n---------- Forwarded message ----------\nFrom: Ann\n\nThe key is blue.\n> Which?";
        assert_eq!(
            own_text(forward),
            "For you.\n---------- Forwarded message ----------\nFrom: Ann\n\nThe key is blue."
        );
    }

    #[test]
    fn a_message_of_nothing_else_stays_whole() {
        assert_eq!(own_text("> When?\n>> Soon."), "When?\nSoon.");
        assert_eq!(own_text("Ann wrote:\n> When?"), "Ann wrote:\nWhen?");
        assert_eq!(own_text("--\nBob\n+351 000"), "--\nBob\n+351 000");
    }
}
