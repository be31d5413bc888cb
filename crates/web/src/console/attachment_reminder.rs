//! Reminds people who mention an attachment and have attached nothing.

use mail::safe_text::SafeText;

use super::message_form::{Form, body_text};

/// Words that announce an attachment, in lower case. The page's script gets the same list.
pub(super) const WORDS: &[&str] = &[
    "attached",
    "attaching",
    "attachment",
    "attachments",
    "enclosed",
    "anhang",
    "anhänge",
    "angehängt",
    "anbei",
    "beigefügt",
    "beigefügte",
    "beigefügten",
    "adjunto",
    "adjuntos",
    "ci-joint",
    "ci-jointe",
];

/// Whether the author's text mentions an attachment. Quoted lines do not count.
fn mentions(text: &str) -> bool {
    let own = text.lines().filter(|line| !line.starts_with('>'));
    let is_part = |character: char| character.is_alphabetic() || character == '-';
    own.flat_map(|line| line.split(move |character| !is_part(character)))
        .any(|word| WORDS.contains(&word.to_lowercase().as_str()))
}

/// Whether a form mentions an attachment and has none.
pub(super) fn is_due(form: &Form) -> bool {
    let fields = &form.fields;
    let brings_files = fields.get("mode") == "forward" || fields.ticked("below");
    if !form.files.is_empty() || !fields.all("keep").is_empty() || brings_files {
        return false;
    }
    let (body, format, pictures) = body_text(fields);
    let text = if format == "html" { SafeText::from_html(&body).into_string() } else { body };
    pictures.is_empty() && mentions(&text)
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn words_of_the_author_count() {
        for text in [
            "See the Attachment.",
            "anbei die Rechnung",
            "Im Anhang: alles",
            "(enclosed)",
            "Veuillez, ci-joint",
        ] {
            assert!(mentions(text), "{text}");
        }
        for text in ["Detached house", "> I attached it\nThanks", "unattached", ""] {
            assert!(!mentions(text), "{text}");
        }
    }
}
