//! The examples of an operation, in every language of the pages.

use model::Timestamp;

use super::{
    call::Call,
    curl, python,
    reference::{Operation, Reference},
    typescript,
};
use crate::openapi::{FUTURE, PAST};

/// The base URL of the examples, as set up in the introduction.
const BASE: &str = "$AGENT_MAILBOX_URL";

/// The examples of an operation: the language's name for highlighters, its name for people, the code.
pub(super) fn all(
    reference: &Reference,
    operation: &Operation<'_>,
) -> [(&'static str, &'static str, String); 3] {
    let call = Call::of(reference, operation);
    let [shell, python, typescript] = match operation.id() {
        // Its signature takes more than a request.
        "receiveRawMail" => [
            include_str!("samples/receive_raw_mail.sh").trim_end().to_owned(),
            include_str!("samples/receive_raw_mail.py").trim_end().to_owned(),
            include_str!("samples/receive_raw_mail.ts").trim_end().to_owned(),
        ],
        _ => [curl::command(&call, BASE), python::code(&call), typescript::code(&call)],
    };
    [("sh", "curl", shell), ("python", "Python", python), ("typescript", "TypeScript", typescript)]
}

/// The command for a server at `url`.
pub(super) fn command_at(reference: &Reference, operation: &Operation<'_>, url: &str) -> String {
    curl::command(&Call::of(reference, operation), url)
}

/// The text with times that suit a reader at `now`, who may run an example right away.
pub(super) fn with_times(text: &str, now: Timestamp) -> String {
    let minute = now.minute();
    text.replace(FUTURE, &minute.plus_seconds(86_400).to_string())
        .replace(PAST, &minute.plus_seconds(-3_600).to_string())
}
