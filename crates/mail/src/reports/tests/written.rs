//! Reports of our own, read back as any other server's would be.

use super::super::{Action, Notice, Recipient, Report, read, write};
use crate::client::check_content;
use crate::compose::Person;
use crate::message::{self, Automatic};

const ORIGINAL: &[u8] =
    b"From: agent@agents.test\r\nSubject: An offer\r\nMessage-ID: <offer@agents.test>\r\nX-Long: a\r\n b\r\n\r\nSecret body\r\n";

fn recipient(address: &str, action: Action, status: Option<&str>, diagnostic: Option<&str>) -> Recipient {
    Recipient {
        final_recipient: address.to_owned(),
        original_recipient: None,
        action,
        status: status.map(str::to_owned),
        diagnostic: diagnostic.map(str::to_owned),
    }
}

fn person(address: &str) -> Person {
    Person { name: None, address: address.to_owned() }
}

fn notice<'a>(recipients: &'a [Recipient], original: &'a [u8]) -> Notice<'a> {
    Notice {
        message_id: "report@agents.test".to_owned(),
        date: 1_793_620_800_000_000,
        reporting_server: "mx.agents.test",
        from: Person {
            name: Some("Mail Delivery".to_owned()),
            address: "mailer-daemon@agents.test".to_owned(),
        },
        to: person("agent@agents.test"),
        arrived: Some(1_793_600_000_000_000),
        recipients,
        original,
    }
}

/// Writes a report and reads it back.
fn back(notice: &Notice<'_>) -> (message::Message, super::super::DeliveryReport, String) {
    let raw = write(notice).unwrap();
    let text = String::from_utf8(raw.clone()).unwrap();
    assert_eq!(check_content(&raw), Ok(()));
    assert!(text.split("\r\n").all(|line| line.len() <= 998), "{text}");
    let message = message::read(&raw);
    assert_eq!(message.faults, [], "{text}");
    match read(&raw, &message) {
        Some(Report::Delivery(report)) => (message, report, text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_report_is_read_as_what_was_written() {
    let recipients = [
        recipient(
            "nobody@example.com",
            Action::Failed,
            Some("5.1.1"),
            Some("550 5.1.1 No such user\r\nhere"),
        ),
        Recipient {
            original_recipient: Some("alias@example.com".to_owned()),
            ..recipient("full@example.org", Action::Failed, None, None)
        },
    ];
    let (message, report, text) = back(&notice(&recipients, ORIGINAL));
    assert_eq!(message.automatic, Some(Automatic::DeliveryReport));
    assert_eq!(message.subject, "Undelivered mail: An offer");
    assert_eq!(message.in_reply_to.as_deref(), Some("offer@agents.test"));
    assert!(text.contains("Auto-Submitted: auto-replied\r\n"));
    assert!(message.text.unwrap().contains("<nobody@example.com>"));
    assert_eq!(report.reporting_server.as_deref(), Some("mx.agents.test"));
    assert_eq!(report.message_id.as_deref(), Some("offer@agents.test"));
    let [first, second] = report.recipients.as_slice() else { panic!("{report:?}") };
    assert_eq!(first.diagnostic.as_deref(), Some("550 5.1.1 No such user here"));
    assert_eq!((first.action, first.status.as_deref()), (Action::Failed, Some("5.1.1")));
    assert_eq!(second.original_recipient.as_deref(), Some("alias@example.com"));
    assert_eq!(
        (second.final_recipient.as_str(), second.status.as_deref()),
        ("full@example.org", Some("5.0.0"))
    );
    assert!(!text.contains("Secret body") && text.contains("X-Long: a\r\n b\r\n"));
}

#[test]
fn a_delay_is_no_failure() {
    let recipients = [recipient("slow@example.com", Action::Delayed, Some("4.4.1"), Some("timed out"))];
    let (message, report, _) = back(&notice(&recipients, ORIGINAL));
    assert_eq!(message.subject, "Delayed mail: An offer");
    assert_eq!(
        (report.recipients[0].action, report.recipients[0].status.as_deref()),
        (Action::Delayed, Some("4.4.1"))
    );
}

#[test]
fn odd_originals_and_answers_cannot_break_it() {
    let long = format!("Subject: {}\r\nX: {}\r\n\r\n", "ü".repeat(900), "y ".repeat(30_000));
    let hostile = "Subject: a\r\nMessage-ID: <x y>\r\n--=_\r\nContent-Type: text/html\r\n\r\n<b>".to_owned();
    for original in ["", "no header at all", &long, &hostile] {
        let diagnostic =
            format!("550 \u{0}\r\n\r\nFinal-Recipient: rfc822; eve@example.com {}", "z".repeat(5000));
        let recipients = [recipient("jürgen@example.com", Action::Failed, None, Some(&diagnostic))];
        let (_, report, text) = back(&notice(&recipients, original.as_bytes()));
        assert_eq!(report.recipients.len(), 1, "{text}");
        assert_eq!(report.recipients[0].final_recipient, "jürgen@example.com");
        assert!(text.len() < 60_000);
    }
}
