//! Messages that are answered, and the many that are not.

use super::{NoReplyReason, may_answer};
use crate::message::{Automatic, read};

const OWN: [&str; 1] = ["Me@agents.test"];

fn answer(headers: &str, sender: Option<&str>) -> Result<String, NoReplyReason> {
    let raw = format!("{}\r\n\r\nHello.\r\n", headers.trim().replace('\n', "\r\n"));
    may_answer(&read(raw.as_bytes()), sender, &OWN).map(|address| address.to_string())
}

const PERSONAL: &str = "From: Bob <bob@example.com>\nTo: me+tag@agents.test\nSubject: Hi";

#[test]
fn a_personal_mail_is_answered_to_its_sender() {
    assert_eq!(answer(PERSONAL, Some("bob@example.com")).unwrap(), "bob@example.com");
    let copied = "From: bob@example.com\nTo: carol@example.com\nCc: ME@agents.test";
    assert_eq!(answer(copied, Some("bounce-handler+1@example.com")).unwrap(), "bounce-handler+1@example.com");
}

#[test]
fn programs_and_lists_are_not() {
    for (header, kind) in [
        ("Auto-Submitted: auto-replied", Automatic::Reply),
        ("Auto-Submitted: auto-generated", Automatic::Generated),
        ("Precedence: bulk", Automatic::List),
        ("Precedence: junk", Automatic::List),
        ("Precedence: list", Automatic::List),
        ("List-Id: <x.example.com>", Automatic::List),
        ("List-Archive: <https://x.example.com>", Automatic::List),
        ("X-Auto-Response-Suppress: All", Automatic::Generated),
        ("X-Autoreply: yes", Automatic::Reply),
    ] {
        let found = answer(&format!("{PERSONAL}\n{header}"), Some("bob@example.com"));
        assert_eq!(found, Err(NoReplyReason::Automatic(kind)), "{header}");
    }
    assert!(answer(&format!("{PERSONAL}\nAuto-Submitted: no"), Some("bob@example.com")).is_ok());
}

#[test]
fn addresses_of_programs_are_not() {
    for sender in [
        "MAILER-DAEMON@example.com",
        "no-reply@example.com",
        "noreply+1@example.com",
        "owner-list@example.com",
        "list-request@example.com",
        "list-bounces@example.com",
        "SRS0=abc=de=x.test=mailer-daemon@example.com",
    ] {
        assert_eq!(answer(PERSONAL, Some(sender)), Err(NoReplyReason::Program), "{sender}");
    }
    let from_program = "From: noreply@example.com\nTo: me@agents.test";
    assert_eq!(answer(from_program, Some("x@example.com")), Err(NoReplyReason::Program));
}

#[test]
fn reports_own_mail_and_strays_are_not() {
    assert_eq!(answer(PERSONAL, None), Err(NoReplyReason::NullSender));
    assert_eq!(answer(PERSONAL, Some("")), Err(NoReplyReason::NullSender));
    assert_eq!(answer(PERSONAL, Some("not an address")), Err(NoReplyReason::Unreadable));
    assert_eq!(answer(PERSONAL, Some("me+x@agents.test")), Err(NoReplyReason::Own));
    let from_us = "From: me@agents.test\nTo: me@agents.test";
    assert_eq!(answer(from_us, Some("bob@example.com")), Err(NoReplyReason::Own));
    let blind = "From: bob@example.com\nTo: carol@example.com";
    assert_eq!(answer(blind, Some("bob@example.com")), Err(NoReplyReason::NotAddressed));
    assert_eq!(answer("To: me@agents.test", Some("bob@example.com")), Err(NoReplyReason::Unreadable));
    let twice = format!("{PERSONAL}\nFrom: eve@example.com");
    assert_eq!(answer(&twice, Some("bob@example.com")), Err(NoReplyReason::Unreadable));
    let circling = format!("{}{PERSONAL}", "Received: from a by b; x\n".repeat(30));
    assert_eq!(answer(&circling, Some("bob@example.com")), Err(NoReplyReason::Loop));
}
