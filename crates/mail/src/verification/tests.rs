//! Messages as services write them, and what must be found in each. Nothing else may be found.

mod messages;

use std::fmt::Write as _;

use super::{Verification, find};
use crate::safe_text::{SafeText, body};
use messages::{OTHER_MESSAGES, SIGN_UP_MESSAGES, SampleMessage};

fn look(mail: &SampleMessage) -> Verification {
    let is_html = mail.text.contains("</");
    let html = is_html.then_some(mail.text);
    let text = (!is_html).then_some(mail.text);
    find(mail.subject, &body(text, html).text, html)
}

fn check(messages: &[SampleMessage]) {
    let mut faults = Vec::new();
    for mail in messages {
        let found = look(mail);
        let codes: Vec<&str> = found.codes.iter().map(|code| code.value.as_str()).collect();
        let links: Vec<&str> = found.links.iter().map(|link| link.url.as_str()).collect();
        if codes != mail.codes || links != mail.links {
            faults
                .push(format!("{}\n{}\n  {:?}\n  {:?}\n", mail.subject, mail.text, found.codes, found.links));
        }
    }
    assert!(faults.is_empty(), "{} of {} messages:\n{}", faults.len(), messages.len(), faults.join("\n"));
}

// rules: READ-23
#[test]
fn codes_and_links_of_sign_up_mails_are_found() {
    assert!(SIGN_UP_MESSAGES.len() >= 45);
    check(SIGN_UP_MESSAGES);
}

// rules: READ-23
#[test]
fn years_dates_prices_phones_and_orders_are_no_codes() {
    assert!(OTHER_MESSAGES.len() >= 25);
    check(OTHER_MESSAGES);
}

// rules: READ-23
#[test]
fn hidden_codes_and_links_are_not_found() {
    let html = "<p>Your code is <b style='display:none'>111111</b><b>222222</b></p>\
                <a href='https://a.example/verify?token=aaaaaaaaaaaa' style='display:none'>Verify</a>\
                <a href='javascript:verify()'>Verify your email</a>";
    let found = find("Your code", &SafeText::from_html(html), Some(html));
    assert_eq!(found.codes.iter().map(|code| code.value.as_str()).collect::<Vec<_>>(), ["222222"]);
    assert!(found.links.is_empty());
}

// rules: READ-23
#[test]
fn what_is_found_is_bounded_and_sorted() {
    let mut text = String::new();
    for number in 0..500 {
        let code = 100_000 + number;
        writeln!(text, "Your verification code is {code}. https://a.example/verify?token=abcdef{number}")
            .unwrap();
    }
    let found = find("Verify", &SafeText::from_plain(&text), None);
    assert_eq!((found.codes.len(), found.links.len()), (10, 10));
    assert!(found.codes.is_sorted_by(|one, two| one.confidence >= two.confidence));
    assert!(found.codes.iter().all(|code| (0.5..1.0).contains(&code.confidence)));
    assert!(found.codes.iter().all(|code| code.context.chars().count() <= 160));
    find(
        &"1".repeat(100_000),
        &SafeText::from_plain(&"code 1 ".repeat(100_000)),
        Some(&"<a href=".repeat(10_000)),
    );
}
