//! The form for writing a message as it is shown: on a page of its own, or below a conversation.

use std::fmt::Write as _;

use askama::Template;
use axum::response::Response;
use model::sending::OutboundMode;
use operations::{Error, Result, assistant, drafts, mailboxes};

use super::{
    attachment_reminder,
    page::{explain, html},
    review_words::reason_sentence,
    shell::Shell,
    sidebar::fill_sidebar,
    time::Zone,
    visit::Visit,
};

/// The message being written.
#[derive(Default)]
pub(super) struct ComposedMessage {
    /// `new`, `reply` or `forward`.
    pub(super) mode: String,
    /// The email that is answered or forwarded.
    pub(super) source: String,
    pub(super) draft: String,
    pub(super) in_reply_to: String,
    pub(super) thread: String,
    pub(super) to: String,
    pub(super) cc: String,
    pub(super) bcc: String,
    pub(super) subject: String,
    /// The text as sanitised HTML.
    pub(super) body: String,
    pub(super) text: String,
    /// Attachments: id, name, size.
    pub(super) files: Vec<(String, String, String)>,
    /// What is added by itself: the attachments of a forwarded email.
    pub(super) follows: usize,
    /// Whether the draft has an original below the text, which is not edited here.
    pub(super) below: bool,
    /// When it is to be sent, as the input's value.
    pub(super) at: String,
    /// Where to go after it was sent; empty for the usual page.
    pub(super) back: String,
    /// Whether it is a draft that a person decides about, so that it cannot be changed here.
    pub(super) in_review: bool,
    /// The triager that wrote the draft, if a person has to approve it.
    pub(super) drafted_by: Option<String>,
}

/// What is wrong, by field. Texts begin with the field's label.
#[derive(Default)]
pub(super) struct FieldErrors {
    pub(super) to: String,
    pub(super) cc: String,
    pub(super) bcc: String,
    pub(super) subject: String,
    pub(super) message: String,
    pub(super) attachments: String,
    pub(super) at: String,
    pub(super) instructions: String,
    /// What belongs to no field.
    pub(super) general: String,
}

impl FieldErrors {
    /// Distributes an error's details to the fields.
    pub(super) fn of(refused: &Error) -> Self {
        let mut errors = Self::default();
        let mut rest = Vec::new();
        for detail in refused.details() {
            let name = detail.path.split(['[', '.']).next().unwrap_or_default();
            let (field, label) = match name {
                "to" => (&mut errors.to, "To"),
                "cc" => (&mut errors.cc, "Cc"),
                "bcc" => (&mut errors.bcc, "Bcc"),
                "subject" => (&mut errors.subject, "Subject"),
                "text" | "html" | "body" => (&mut errors.message, "Message"),
                "attachments" => (&mut errors.attachments, "Attachments"),
                "scheduled_send_at" => (&mut errors.at, "Date and time"),
                "prompt" => (&mut errors.instructions, "Instructions"),
                _ => {
                    rest.push(detail.clone());
                    continue;
                }
            };
            if !field.is_empty() {
                field.push(' ');
            }
            let message = match (name, detail.message.as_str()) {
                (_, code) if reason_sentence(code).is_some() => reason_sentence(code).unwrap_or(code),
                ("text" | "html" | "body", text) if text.ends_with("is required") => "write something first",
                (_, message) => message.trim_end_matches('.'),
            };
            let _ = write!(field, "{label}: {message}.");
        }
        if refused.details().is_empty() || !rest.is_empty() {
            errors.general = explain(refused);
        }
        errors
    }
}

/// A text that the language model wrote, before or after it is accepted.
#[derive(Default)]
pub(super) struct Rewrite {
    pub(super) instructions: String,
    /// The text that is offered; empty when there is none.
    pub(super) rewritten: String,
    /// The text before the accepted one; empty when there is nothing to undo.
    pub(super) previous: String,
}

/// What the form says beside its content.
#[derive(Default)]
pub(super) struct Notice {
    pub(super) errors: FieldErrors,
    pub(super) rewrite: Rewrite,
    /// The action that waits for an answer: the message mentions an attachment and has none.
    pub(super) reminder: Option<&'static str>,
}

/// Everything that the form shows.
pub(super) struct ComposeForm {
    mailbox: String,
    from: String,
    message: ComposedMessage,
    notice: Notice,
    /// Whether there is a language model to write with.
    model: bool,
    /// The price of that in credits.
    price: u64,
    suggestions: Vec<(String, String)>,
    zone: String,
    earliest: String,
    /// Whether mail for other servers is refused.
    is_local: bool,
    inline: bool,
    attachment_words: String,
}

impl ComposeForm {
    fn new(
        visit: &Visit,
        from: String,
        zone: &Zone,
        mailbox: &str,
        shown: (ComposedMessage, Notice),
    ) -> Self {
        let (message, notice) = shown;
        Self {
            mailbox: mailbox.to_owned(),
            from,
            message,
            notice,
            model: assistant::is_configured(visit.app()),
            price: drafts::REGENERATE.class.credits(),
            suggestions: zone.suggestions(),
            zone: zone.name.clone(),
            earliest: zone.field(visit.app().now()),
            is_local: visit.app().settings().outbound.mode == OutboundMode::Local,
            inline: false,
            attachment_words: attachment_reminder::WORDS.join(" "),
        }
    }
}

#[derive(Template)]
#[template(path = "console/compose.html")]
struct ComposePage {
    shell: Shell,
    heading: &'static str,
    form: ComposeForm,
}

fn heading(message: &ComposedMessage) -> &'static str {
    match message.mode.as_str() {
        "reply" => "Reply",
        "forward" => "Forward",
        _ if message.draft.is_empty() => "New message",
        _ => "Draft",
    }
}

/// The form on a page of its own.
pub(super) async fn render(
    visit: &Visit,
    mailbox: &str,
    message: ComposedMessage,
    notice: Notice,
) -> Result<Response> {
    let mut shell = visit.shell("Compose", "compose").await?;
    fill_sidebar(visit, &mut shell, mailbox).await?;
    let from = shell.mailboxes.iter().find(|one| one.id == mailbox).map(|one| one.email.clone());
    let heading = heading(&message);
    heading.clone_into(&mut shell.head.title);
    let form = ComposeForm::new(visit, from.unwrap_or_default(), &shell.zone, mailbox, (message, notice));
    html(&ComposePage { shell, heading, form })
}

#[derive(Template)]
#[template(path = "console/compose_inline.html")]
struct InlineForm {
    heading: &'static str,
    form: ComposeForm,
}

/// The form below a conversation.
pub(super) async fn render_inline(
    visit: &Visit,
    mailbox: &str,
    message: ComposedMessage,
) -> Result<Response> {
    let own = mailboxes::get(visit.app(), &visit.call(&mailboxes::GET)?, mailbox).await?;
    let (zone, heading) = (visit.zone().await?, heading(&message));
    let mut form = ComposeForm::new(visit, own.email, &zone, mailbox, (message, Notice::default()));
    form.inline = true;
    html(&InlineForm { heading, form })
}

#[cfg(test)]
mod tests {
    use operations::{Detail, ErrorKind};

    use super::*;

    #[test]
    fn errors_stand_at_their_fields() {
        let details = vec![
            Detail::new("to[1]", "“x” is not an email address."),
            Detail::new("text", "one of html and text is required"),
            Detail::new("headers.X", "is forbidden"),
        ];
        let errors = FieldErrors::of(&Error::new(ErrorKind::ValidationFailed).with_details(details));
        assert_eq!(errors.to, "To: “x” is not an email address.");
        assert_eq!(errors.message, "Message: write something first.");
        assert!(errors.cc.is_empty() && errors.general.contains("is forbidden"));
        let errors = FieldErrors::of(&Error::new(ErrorKind::MessageTooLarge));
        assert!(!errors.general.is_empty());
    }
}
