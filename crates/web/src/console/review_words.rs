//! Reviews in plain words: why a person is asked, what became of one, and what stands against a decision.

use std::collections::HashMap;

use model::{
    reviews::{Review, ReviewState},
    send_policies::PolicyReason,
};
use operations::{Error, ErrorKind, Result, api_keys, members};

use super::{message_badges::Badge, page, time::Zone, visit::Visit};

/// The badge of a reason.
pub(super) fn reason_badge(reason: PolicyReason) -> Badge {
    let (text, why) = match reason {
        PolicyReason::NewRecipient => {
            ("New recipient", "This workspace has never written to an address of this message.")
        }
        PolicyReason::ReviewAll => {
            ("All messages are reviewed", "The send policy asks a person about every message.")
        }
        PolicyReason::QuietHours => {
            ("Quiet hours", "The message was sent in quiet hours of the send policy.")
        }
        PolicyReason::RecipientBlocked => ("Blocked recipient", "The send policy blocks an address."),
        PolicyReason::Content => {
            ("Found in the contents", "The send policy asks about what the message contains.")
        }
        PolicyReason::ScanFailed => ("Not searched", "The contents could not be searched in time."),
        PolicyReason::RecipientSuppressed => {
            ("Suppressed recipient", "An address is not written to any more.")
        }
        PolicyReason::CapReached => ("Cap reached", "A cap of the send policy is reached."),
        PolicyReason::ReviewNeeded => ("Needs a review", "The send policy asks a person about this message."),
    };
    ("warn", text.to_owned(), why.to_owned())
}

/// What a reason means for the address or the message that it stands at, if the text is the code of one.
pub(super) fn reason_sentence(code: &str) -> Option<&'static str> {
    Some(match code.parse().ok()? {
        PolicyReason::RecipientBlocked => "the send policy does not allow this address",
        PolicyReason::NewRecipient => {
            "the workspace has never written to this address, and the send policy blocks new recipients"
        }
        PolicyReason::ReviewAll | PolicyReason::ReviewNeeded => {
            "the send policy asks a person about this message"
        }
        PolicyReason::RecipientSuppressed => {
            "this address is suppressed: it bounced, complained, unsubscribed, or was added"
        }
        PolicyReason::Content => "the send policy does not allow what was found here",
        PolicyReason::ScanFailed => "the contents could not be searched in time",
        PolicyReason::QuietHours => "these are quiet hours of the send policy",
        PolicyReason::CapReached => "a cap of the send policy is reached",
    })
}

/// The badge of a state.
pub(super) fn state_badge(state: ReviewState) -> (&'static str, &'static str) {
    match state {
        ReviewState::Pending => ("info", "Pending"),
        ReviewState::Approved => ("ok", "Approved"),
        ReviewState::Rejected => ("bad", "Rejected"),
        ReviewState::Expired => ("warn", "Expired"),
        ReviewState::Withdrawn => ("", "Withdrawn"),
    }
}

/// Who asked for a message to be sent.
pub(super) fn requester(review: &Review) -> String {
    match &review.requested_by_name {
        Some(name) if review.requested_by.starts_with("key_") => format!("API key {name}"),
        Some(name) => name.clone(),
        None => review.requested_by.clone(),
    }
}

/// The names of people and keys by their ids.
pub(super) async fn names(visit: &Visit) -> Result<HashMap<String, String>> {
    let people = members::list(visit.app(), &visit.call(&members::LIST)?).await?;
    let keys = api_keys::list(visit.app(), &visit.call(&api_keys::LIST)?).await?;
    let people = people.into_iter().map(|one| (one.id.to_string(), one.email));
    Ok(people
        .chain(keys.into_iter().map(|one| (one.id.to_string(), format!("API key {}", one.name))))
        .collect())
}

/// Who decided, by name where it is known.
pub(super) fn decider(review: &Review, names: &HashMap<String, String>) -> String {
    let id = review.decided_by.as_deref().unwrap_or_default();
    match (names.get(id), id.strip_prefix("telegram:")) {
        (Some(name), _) => name.clone(),
        (None, Some(chat)) => format!("Telegram chat {chat}"),
        (None, None) => id.to_owned(),
    }
}

/// What stands against a decision, for people.
pub(super) fn explain(refused: &Error, zone: &Zone, now: model::Timestamp) -> String {
    match refused.kind() {
        ErrorKind::ReviewDecided => {
            "This message was decided already, by another person or because its time was up.".to_owned()
        }
        ErrorKind::ReviewChanged => {
            "The message changed since you opened it. Look at it again, then decide.".to_owned()
        }
        ErrorKind::DecisionForbidden => {
            "You asked for this message yourself, so another admin has to decide about it.".to_owned()
        }
        ErrorKind::ReviewBlocked | ErrorKind::SendBlocked => {
            let details = refused.details().iter();
            let all: Vec<String> = details
                .map(|detail| {
                    let words = reason_sentence(&detail.message).unwrap_or(&detail.message);
                    format!("{}: {words}.", place(&detail.path))
                })
                .collect();
            format!("The send policy forbids this message by now. {}", all.join(" ")).trim_end().to_owned()
        }
        ErrorKind::SendCapExceeded | ErrorKind::EmailSendRateLimitExceeded => {
            let limit = if refused.kind() == ErrorKind::SendCapExceeded {
                "A cap of the send policy"
            } else {
                "A limit of the plan"
            };
            let at = zone.when(now.plus_seconds(seconds(refused))).full;
            format!("{limit} has no room for this message until {at}. Approve it then.")
        }
        _ => page::explain(refused),
    }
}

fn seconds(refused: &Error) -> i64 {
    refused.retry_after().and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(0)
}

/// The name of the line that a path such as `to[0]` is about.
pub(super) fn place(path: &str) -> &'static str {
    match path.split('[').next().unwrap_or_default() {
        "to" => "To",
        "cc" => "Cc",
        "bcc" => "Bcc",
        "subject" => "Subject",
        "text" | "html" => "Text",
        "attachments" if path.ends_with(".filename") => "Name of an attachment",
        "attachments" => "Attachment",
        _ => "Message",
    }
}

#[cfg(test)]
mod tests {
    use operations::Detail;

    use super::*;

    #[test]
    fn refusals_are_told_in_words() {
        let now: model::Timestamp = "2026-07-14T09:00:00Z".parse().unwrap();
        let zone = Zone::new("UTC", now);
        let blocked = Error::new(ErrorKind::ReviewBlocked).with_details(vec![
            Detail::new("to[1]", "recipient_blocked"),
            Detail::new("cc[0]", "new_recipient"),
        ]);
        let said = explain(&blocked, &zone, now);
        assert!(said.contains("To: the send policy does not allow this address."), "{said}");
        assert!(said.contains("Cc: the workspace has never written"), "{said}");
        let capped = Error::new(ErrorKind::SendCapExceeded).with_retry_after(3600);
        assert!(explain(&capped, &zone, now).contains("until Tue 14 Jul 2026, 10:00 UTC"));
        assert_eq!(reason_sentence("is required"), None);
    }
}
