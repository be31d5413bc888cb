//! Reports in the shapes that common servers give them.

#[cfg(feature = "network")]
mod written;

use super::{Action, ComplaintReport, DeliveryReport, MAX_RECIPIENTS, Recipient, Report, read};
use crate::message::Message;

fn delivery(raw: &str) -> DeliveryReport {
    match read(raw.replace('\n', "\r\n").as_bytes(), &Message::default()) {
        Some(Report::Delivery(report)) => report,
        other => panic!("{other:?}"),
    }
}

fn complaint(raw: &str) -> ComplaintReport {
    match read(raw.replace('\n', "\r\n").as_bytes(), &Message::default()) {
        Some(Report::Complaint(report)) => report,
        other => panic!("{other:?}"),
    }
}

const POSTFIX: &str = "From: MAILER-DAEMON@mx.example.net (Mail Delivery System)
Subject: Undelivered Mail Returned to Sender
To: agent@agents.test
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
\tboundary=\"4Xk9Lq1Zz2.1762000000/mx.example.net\"
Message-Id: <20261101120000.4Xk9Lq@mx.example.net>

This is a MIME-encapsulated message.

--4Xk9Lq1Zz2.1762000000/mx.example.net
Content-Description: Notification
Content-Type: text/plain; charset=us-ascii

This is the mail system at host mx.example.net.

--4Xk9Lq1Zz2.1762000000/mx.example.net
Content-Description: Delivery report
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.net
X-Postfix-Queue-ID: 4Xk9Lq1Zz2
X-Postfix-Sender: rfc822; agent@agents.test
Arrival-Date: Sun,  1 Nov 2026 12:00:00 +0000 (UTC)

Final-Recipient: rfc822; nobody@example.net
Original-Recipient: rfc822;nobody@example.net
Action: failed
Status: 5.1.1
Remote-MTA: dns; mail.example.net
Diagnostic-Code: smtp; 550 5.1.1 <nobody@example.net>: Recipient address
    rejected: User unknown in virtual mailbox table

Final-Recipient: rfc822; late@example.net
Action: delayed
Status: 4.4.1

--4Xk9Lq1Zz2.1762000000/mx.example.net
Content-Description: Undelivered Message
Content-Type: message/rfc822

Return-Path: <agent@agents.test>
From: agent@agents.test
Subject: Hello
Message-ID: <sent-1@agents.test>

Final-Recipient: rfc822; trick@example.net
--4Xk9Lq1Zz2.1762000000/mx.example.net--
";

#[test]
fn postfix() {
    let report = delivery(POSTFIX);
    assert_eq!(report.reporting_server.as_deref(), Some("mx.example.net"));
    assert_eq!(report.message_id.as_deref(), Some("sent-1@agents.test"));
    let rejected = Recipient {
        final_recipient: "nobody@example.net".into(),
        original_recipient: Some("nobody@example.net".into()),
        action: Action::Failed,
        status: Some("5.1.1".into()),
        diagnostic: Some(
            "550 5.1.1 <nobody@example.net>: Recipient address rejected: User unknown in virtual mailbox table".into(),
        ),
    };
    assert_eq!(report.recipients.len(), 2);
    assert_eq!(report.recipients[0], rejected);
    assert_eq!(report.recipients[1].action, Action::Delayed);
    assert_eq!(report.recipients[1].final_recipient, "late@example.net");
}

#[test]
fn line_ends_of_the_other_kind() {
    let unix = read(POSTFIX.as_bytes(), &Message::default());
    assert_eq!(unix, Some(Report::Delivery(delivery(POSTFIX))));
}

#[test]
fn gmail() {
    let report = delivery(
        "From: Mail Delivery Subsystem <mailer-daemon@googlemail.com>
To: agent@agents.test
Subject: Delivery Status Notification (Failure)
Content-Type: multipart/report; boundary=\"000000000000abcdef\"; report-type=delivery-status
In-Reply-To: <sent-2@agents.test>

--000000000000abcdef
Content-Type: multipart/related; boundary=\"000000000000fedcba\"

--000000000000fedcba
Content-Type: multipart/alternative; boundary=\"000000000000aaaaaa\"

--000000000000aaaaaa
Content-Type: text/plain; charset=\"UTF-8\"

Address not found
--000000000000aaaaaa--
--000000000000fedcba--
--000000000000abcdef
Content-Type: message/delivery-status

Reporting-MTA: dns; googlemail.com
Received-From-MTA: dns; agent@agents.test
Arrival-Date: Sun, 01 Nov 2026 04:00:00 -0800 (PST)
X-Original-Message-ID: <sent-2@agents.test>

Final-Recipient: rfc822; missing@gmail.com
Action: failed
Status: 5.1.1
Remote-MTA: dns; gmail-smtp-in.l.google.com. (2a00:1450::1a, the server for the domain gmail.com.)
Diagnostic-Code: smtp; 550-5.1.1 The email account that you tried to reach does not exist. Please try
 550-5.1.1 double-checking the recipient's email address for typos
Last-Attempt-Date: Sun, 01 Nov 2026 04:00:01 -0800 (PST)

--000000000000abcdef
Content-Type: message/rfc822

Received: by 10.0.0.1
Message-ID: <sent-2@agents.test>

--000000000000abcdef--
",
    );
    assert_eq!(report.message_id.as_deref(), Some("sent-2@agents.test"));
    assert_eq!(report.recipients[0].final_recipient, "missing@gmail.com");
    assert_eq!(report.recipients[0].action, Action::Failed);
}

#[test]
fn exchange_with_an_encoded_status_and_headers_only() {
    let report = delivery(
        "From: postmaster@contoso.example
Subject: Undeliverable: Hello
Content-Type: multipart/report; report-type=delivery-status; boundary=\"_a1b2;c3=_\"

--_a1b2;c3=_
Content-Type: text/html; charset=\"utf-8\"

<p>Delivery has failed</p>
--_a1b2;c3=_
Content-Type: message/delivery-status
Content-Transfer-Encoding: quoted-printable

Reporting-MTA: dns;EX01.contoso.example
Received-From-MTA: dns;mail.agents.test

Original-Recipient: rfc822;Gone=40User@contoso.example
Final-Recipient: rfc822;gone=40user@contoso.example
Action: failed
Status: 5.7.1
X-Display-Name: Gone User

--_a1b2;c3=_
Content-Type: text/rfc822-headers

Subject: Hello
Message-ID:
 <sent-3@agents.test>
--_a1b2;c3=_--
",
    );
    assert_eq!(report.reporting_server.as_deref(), Some("EX01.contoso.example"));
    assert_eq!(report.message_id.as_deref(), Some("sent-3@agents.test"));
    assert_eq!(report.recipients[0].final_recipient, "gone@user@contoso.example");
    assert_eq!(report.recipients[0].status.as_deref(), Some("5.7.1"));
}

#[test]
fn exim_new_and_old() {
    let new = delivery(
        "X-Failed-Recipients: nobody@example.org
Auto-Submitted: auto-replied
From: Mail Delivery System <Mailer-Daemon@host.example>
Content-Type: multipart/report; report-type=delivery-status; boundary=1762000000-eximdsn-123
MIME-Version: 1.0

--1762000000-eximdsn-123
Content-type: text/plain; charset=us-ascii

A message that you sent could not be delivered.
--1762000000-eximdsn-123
Content-type: message/delivery-status

Reporting-MTA: dns; host.example

Action: failed
Final-Recipient: rfc822;nobody@example.org
Status: 5.0.0
Remote-MTA: dns; mx.example.org
Diagnostic-Code: smtp; 550 No such user

--1762000000-eximdsn-123
Content-type: message/rfc822

Message-Id: <sent-4@agents.test>

--1762000000-eximdsn-123--
",
    );
    assert_eq!(new.recipients.len(), 1);
    assert_eq!(new.recipients[0].action, Action::Failed);
    assert_eq!(new.recipients[0].diagnostic.as_deref(), Some("550 No such user"));
    let old = delivery(
        "X-Failed-Recipients: one@example.org, two@example.org
Auto-Submitted: auto-replied
From: Mail Delivery System <Mailer-Daemon@host.example>
Subject: Mail delivery failed: returning message to sender

This message was created automatically by mail delivery software.

  one@example.org
    SMTP error from remote mail server: 550 unknown

------ This is a copy of the message, including all the headers. ------

Return-path: <agent@agents.test>
Message-ID: <sent-5@agents.test>
Subject: Hello
",
    );
    assert_eq!(old.message_id.as_deref(), Some("sent-5@agents.test"));
    let addresses: Vec<_> =
        old.recipients.iter().map(|recipient| recipient.final_recipient.as_str()).collect();
    assert_eq!(addresses, ["one@example.org", "two@example.org"]);
}

/// A report with the given fields.
fn report_with(fields: &str) -> String {
    format!(
        "Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/delivery-status\n\n{fields}\n--b--\n"
    )
}

#[test]
fn sloppy_fields() {
    let no_action =
        delivery(&report_with("Final-Recipient: rfc822; <a@example.org>\nStatus: 5.2.2 (mailbox full)\n"));
    assert_eq!(no_action.recipients[0].action, Action::Failed);
    assert_eq!(no_action.recipients[0].status.as_deref(), Some("5.2.2"));
    assert_eq!(no_action.recipients[0].final_recipient, "a@example.org");
    let no_blank_lines = delivery(&report_with(
        "Reporting-MTA: dns; x\nFinal-Recipient: a@example.org\nAction: Failed (gone)\nFinal-Recipient: b@example.org\nAction: delivered\n",
    ));
    let actions: Vec<_> = no_blank_lines.recipients.iter().map(|recipient| recipient.action).collect();
    assert_eq!(actions, [Action::Failed, Action::Delivered]);
    let blank_lines_within = delivery(&report_with(
        "Final-Recipient: rfc822; a@example.org\n\nAction: relayed\n\nStatus: 2.0.0\n",
    ));
    assert_eq!(blank_lines_within.recipients.len(), 1);
    assert_eq!(blank_lines_within.recipients[0].action, Action::Relayed);
    let from_diagnostic = delivery(&report_with(
        "Original-Recipient: rfc822;a@example.org\nDiagnostic-Code: smtp; 452 4.2.2 Mailbox full\n",
    ));
    assert_eq!(from_diagnostic.recipients[0].action, Action::Delayed);
    assert_eq!(from_diagnostic.recipients[0].final_recipient, "a@example.org");
}

#[test]
fn the_answered_mail_is_the_last_resort() {
    let raw = report_with("Final-Recipient: rfc822; a@example.org\nAction: failed\n");
    let message = Message { in_reply_to: Some("sent-6@agents.test".into()), ..Message::default() };
    let Some(Report::Delivery(report)) = read(raw.as_bytes(), &message) else { panic!() };
    assert_eq!(report.message_id.as_deref(), Some("sent-6@agents.test"));
}

const COMPLAINT: &str = "From: <abusedesk@isp.example>
Subject: FW: Earn money
Content-Type: multipart/report; report-type=feedback-report; boundary=\"part1_13d.2e68ed54\"

--part1_13d.2e68ed54
Content-Type: text/plain

This is an email abuse report.
--part1_13d.2e68ed54
Content-Type: message/feedback-report

Feedback-Type: Abuse
User-Agent: SomeGenerator/1.0
Version: 1
Original-Mail-From: <agent@agents.test>
Original-Rcpt-To: <user@isp.example>
Source-IP: 192.0.2.1
Removal-Recipient: user@isp.example

--part1_13d.2e68ed54
Content-Type: message/rfc822
Content-Disposition: inline

From: <agent@agents.test>
Message-ID: <sent-7@agents.test>

Text
--part1_13d.2e68ed54--
";

#[test]
fn complaints() {
    let expected = ComplaintReport {
        feedback_type: "abuse".into(),
        original_sender: Some("agent@agents.test".into()),
        original_recipients: vec!["user@isp.example".into()],
        message_id: Some("sent-7@agents.test".into()),
    };
    assert_eq!(complaint(COMPLAINT), expected);
    assert!(expected.is_complaint());
    let taken_back = complaint(&COMPLAINT.replace("Feedback-Type: Abuse", "Feedback-Type: not-spam"));
    assert!(!taken_back.is_complaint());
    let noted = COMPLAINT
        .replace("Original-Rcpt-To: <user@isp.example>\n", "")
        .replace("Removal-Recipient: user@isp.example\n", "")
        .replace("From: <agent@agents.test>\nM", "X-HmXmrOriginalRecipient: user@hotmail.example\nM");
    assert_eq!(complaint(&noted).original_recipients, ["user@hotmail.example"]);
}

#[test]
fn other_mail_is_no_report() {
    for raw in [
        "",
        "\n",
        "Subject: Hello\n\nFinal-Recipient: rfc822; a@example.org\nAction: failed\n",
        "Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: text/plain\n\nAction: failed\n--b--\n",
        "Content-Type: multipart/report\n\nno boundary\n",
        "Content-Type: multipart/report; boundary=\"\"\n\n--\nContent-Type: message/delivery-status\n\nFinal-Recipient: a@b\nAction: failed\n",
        "Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/disposition-notification\n\nFinal-Recipient: rfc822;a@b.c\n--b--\n",
        "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\nContent-Type: message/delivery-status\n\nFinal-Recipient: rfc822;a@b.c\nAction: failed\n--b--\n",
    ] {
        assert_eq!(read(raw.as_bytes(), &Message::default()), None, "{raw:?}");
    }
}

#[test]
fn hostile_reports_are_bounded() {
    let many: Vec<String> = (0..5_000)
        .map(|at| format!("Final-Recipient: rfc822; u{at}@example.org\nAction: failed\n"))
        .collect();
    assert!(delivery(&report_with(&many.join("\n"))).recipients.len() <= MAX_RECIPIENTS);
    let nested = "Content-Type: multipart/report; boundary=b\n\n--b\n".repeat(20_000);
    assert_eq!(read(nested.as_bytes(), &Message::default()), None);
    let messages = "Content-Type: message/rfc822\n\n".repeat(50_000);
    assert_eq!(read(messages.as_bytes(), &Message::default()), None);
    let boundaries = format!("Content-Type: multipart/report; boundary=b\n\n{}", "--b\n\n".repeat(100_000));
    assert_eq!(read(boundaries.as_bytes(), &Message::default()), None);
    let long = report_with(&format!(
        "Final-Recipient: rfc822; a@example.org\nAction: failed\nDiagnostic-Code: smtp; {}\u{7}\n",
        "x ".repeat(40_000)
    ));
    let diagnostic = delivery(&long).recipients[0].diagnostic.clone().unwrap();
    assert!(diagnostic.len() <= 1_000 && !diagnostic.contains('\u{7}'));
}

proptest::proptest! {
    #[test]
    fn nothing_makes_it_panic(raw in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400), cut in 0usize..2_000) {
        let _ = read(&raw, &Message::default());
        let mut mixed = POSTFIX.as_bytes()[..cut.min(POSTFIX.len())].to_vec();
        mixed.extend_from_slice(&raw);
        let _ = read(&mixed, &Message::default());
    }
}
