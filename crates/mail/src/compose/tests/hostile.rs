//! Values that try to be more than values: either refused, or read back as exactly what they are.

use proptest::prelude::*;

use super::*;
use crate::address::Address;
use crate::compose::{ComposeError, check_text};
use crate::message::decode;

fn refused(change: impl FnOnce(&mut UnencodedMessage)) -> ComposeError {
    let mut mail = plain();
    change(&mut mail);
    compose(&mail).unwrap_err()
}

/// Every field that is a text, with a way to set it.
type Setter = fn(&mut UnencodedMessage, String);

const FIELDS: [(&str, Setter); 16] = [
    ("message_id", |mail, text| mail.message_id = text),
    ("from name", |mail, text| mail.from.name = Some(text)),
    ("from", |mail, text| mail.from.address = text),
    ("reply_to", |mail, text| mail.reply_to = vec![person(&text, "r@example.com")]),
    ("reply_to address", |mail, text| mail.reply_to = vec![person("", &text)]),
    ("to", |mail, text| mail.to = vec![person(&text, "t@example.com")]),
    ("to address", |mail, text| mail.to = vec![person("", &text)]),
    ("cc", |mail, text| mail.cc = vec![person(&text, "c@example.com")]),
    ("subject", |mail, text| mail.subject = text),
    ("in_reply_to", |mail, text| mail.in_reply_to = Some(text)),
    ("references", |mail, text| mail.references = vec!["a@b".to_owned(), text]),
    ("filename", |mail, text| mail.files = vec![file(&text, "text/plain", b"x")]),
    ("media_type", |mail, text| mail.files = vec![file("x", &text, b"x")]),
    ("content_id", |mail, text| mail.files = vec![picture(&text, b"x")]),
    ("header name", |mail, text| mail.headers = vec![(text, "x".to_owned())]),
    ("header value", |mail, text| mail.headers = vec![("X-A".to_owned(), text)]),
];

#[test]
fn no_field_takes_a_control_character() {
    let hostile =
        ["\r\nBcc: evil@example.com", "\nBcc: e@x", "\rBcc: e@x", "\0", "\u{b}", "\u{85}", "\u{7f}"];
    for (name, set) in FIELDS {
        for text in hostile {
            for text in [format!("a@b.example{text}"), format!("X-A{text}x"), text.to_owned()] {
                let mut mail = plain();
                set(&mut mail, text.clone());
                assert!(compose(&mail).is_err(), "{name}: {text:?}");
            }
        }
    }
    assert!(matches!(check_text("subject", "a\rb"), Err(ComposeError::Control { character: '\r', .. })));
    assert_eq!(check_text("subject", "ümlaut"), Ok(()));
}

#[test]
fn what_cannot_be_written_is_refused_by_name() {
    assert_eq!(
        refused(|mail| mail.headers = vec![("Bcc".into(), "a@b".into())]),
        ComposeError::HeaderName("Bcc".into())
    );
    assert_eq!(
        refused(|mail| mail.headers = vec![("X-".into(), "a".into())]),
        ComposeError::HeaderName("X-".into())
    );
    let colon = "X-A: b".to_owned();
    assert_eq!(
        refused(|mail| mail.headers = vec![(colon.clone(), "a".into())]),
        ComposeError::HeaderName(colon.clone())
    );
    assert_eq!(
        refused(|mail| mail.headers = vec![("List-Id".into(), "ü".into())]),
        ComposeError::HeaderValue("List-Id".into())
    );
    assert_eq!(
        refused(|mail| mail.headers = vec![("X-A".into(), "a".into()); 21]),
        ComposeError::TooManyHeaders
    );
    assert_eq!(refused(|mail| mail.subject = "ü".repeat(600)), ComposeError::SubjectTooLong);
    assert_eq!(refused(|mail| mail.subject = "a ".repeat(600)), ComposeError::SubjectTooLong);
    assert_eq!(refused(|mail| mail.date = -1), ComposeError::Date);
    assert_eq!(refused(|mail| mail.date = i64::MAX), ComposeError::Date);
    assert_eq!(
        refused(|mail| mail.files = vec![picture("a@b", b"x"), picture("a@b", b"y")]),
        ComposeError::RepeatedContentId("a@b".into())
    );
    assert!(matches!(
        refused(|mail| mail.text = Some("a\0b".into())),
        ComposeError::Control { character: '\0', .. }
    ));
    assert!(matches!(refused(|mail| mail.message_id = "a>b".into()), ComposeError::Id { .. }));
    assert!(matches!(refused(|mail| mail.from.address = "a@b, c@d".into()), ComposeError::Address { .. }));
}

/// Texts that mean something to some reader of headers.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[ -~]{0,12}",
        4 => "\\PC{0,8}",
        1 => Just("=?utf-8?q?x?=".to_owned()),
        1 => Just("\", <evil@example.com> ".to_owned()),
        1 => Just("(comment) ; : , \\".to_owned()),
        1 => Just("\u{2028}\u{2029}\u{202e}".to_owned()),
        1 => " {1,90}",
        1 => "[a-z]{60,120}",
    ];
    proptest::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

/// Bodies with every kind of line end.
fn body() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[ -~]{0,100}",
        2 => "\\PC{0,40}",
        4 => Just("\r\n".to_owned()),
        2 => Just("\n".to_owned()),
        1 => Just("\r".to_owned()),
        1 => Just("\r\n.\r\n".to_owned()),
        1 => Just("\nFrom ".to_owned()),
        1 => Just("--=_".to_owned()),
        1 => " {1,3}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

prop_compose! {
    fn mail()(
        names in proptest::collection::vec(text(), 4),
        to in proptest::collection::vec("[a-z]{1,8}@(example\\.com|bücher\\.example)", 0..4),
        cc in proptest::collection::vec("[a-zü]{1,8}@example\\.org", 0..3),
        subject in text(),
        ids in proptest::collection::vec("[!-;=?-~]{1,60}", 1..6),
        plain_text in proptest::option::of(body()),
        html in proptest::option::of(body()),
        files in proptest::collection::vec((text(), proptest::collection::vec(any::<u8>(), 0..200), any::<bool>()), 0..3),
        own in proptest::collection::vec(text(), 0..3),
    ) -> UnencodedMessage {
        let people = |addresses: Vec<String>| -> Vec<Person> {
            addresses.iter().zip(names.iter().skip(1).cycle()).map(|(address, name)| person(name, address)).collect()
        };
        UnencodedMessage {
            message_id: "fixed@agents.test".to_owned(),
            date: 1_793_620_800_000_000,
            from: person(&names[0], "ann@agents.test"),
            reply_to: Vec::new(),
            to: people(to),
            cc: people(cc),
            subject,
            in_reply_to: ids.last().cloned(),
            references: ids,
            text: plain_text,
            html,
            files: files.into_iter().enumerate().map(|(number, (name, bytes, inline))| File {
                content_id: inline.then(|| format!("{number}@agents.test")),
                ..file(&name, "application/x-test", &bytes)
            }).collect(),
            headers: own.into_iter().enumerate().map(|(number, value)| (format!("X-Own-{number}"), value)).collect(),
            auto_submitted: None,
        }
    }
}

/// What the reader must see of people.
fn seen(people: &[Person]) -> Vec<(Option<String>, String)> {
    let name = |person: &Person| person.name.as_deref().map(one_line).filter(|name| !name.is_empty());
    let cut = |name: String| name.chars().take(255).collect::<String>();
    people
        .iter()
        .map(|person| (name(person).map(cut), Address::parse(&person.address).unwrap().to_string()))
        .collect()
}

fn read_people(people: &[message::Person]) -> Vec<(Option<String>, String)> {
    people.iter().map(|person| (person.name.clone(), person.address.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_is_what_was_given(mail in mail()) {
        let (raw, read) = match compose(&mail) {
            Ok(_) => sent(&mail),
            Err(ComposeError::SubjectTooLong) => return Ok(()),
            Err(error) => panic!("{error}"),
        };
        let mut expected = vec!["Date", "From", "To"];
        if mail.to.is_empty() && !mail.cc.is_empty() {
            expected.pop();
        }
        if !mail.cc.is_empty() {
            expected.push("Cc");
        }
        expected.extend(["Subject", "Message-ID", "In-Reply-To", "References"]);
        expected.extend(mail.headers.iter().map(|(name, _)| name.as_str()));
        expected.extend(["MIME-Version", "Content-Type"]);
        let names: Vec<String> = headers(&raw).into_iter().map(|(name, _)| name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).filter(|name| *name != "Content-Transfer-Encoding").collect();
        prop_assert_eq!(names, expected);
        prop_assert_eq!(read_people(read.from.as_slice()), seen(std::slice::from_ref(&mail.from)));
        prop_assert_eq!(read_people(&read.to), seen(&mail.to));
        prop_assert_eq!(read_people(&read.cc), seen(&mail.cc));
        prop_assert_eq!(read.subject, one_line(&mail.subject));
        prop_assert_eq!(read.references, mail.references);
        prop_assert_eq!(read.in_reply_to, mail.in_reply_to);
        prop_assert_eq!(read.files.len(), mail.files.len());
        for file in &mail.files {
            let found = read.files.iter().any(|read| decode(&raw, read) == file.bytes && read.content_id == file.content_id);
            prop_assert!(found);
        }
        let given = mail.text.as_deref().or(mail.html.as_deref()).unwrap_or_default();
        if mail.text.is_some() {
            prop_assert_eq!(unified(&read.text.unwrap_or_default()), unified(given));
        }
        if let Some(html) = &mail.html {
            prop_assert_eq!(unified(&read.html.unwrap_or_default()), unified(html));
        }
    }

    #[test]
    fn any_text_in_any_field_is_refused_or_harmless(field in 0..FIELDS.len(), text in "(?s).{0,60}") {
        let mut mail = plain();
        FIELDS[field].1(&mut mail, text);
        if let Ok(raw) = compose(&mail) {
            check_wire(&raw);
            let block = headers(&raw);
            let count = |name: &str| block.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name)).count();
            prop_assert_eq!(count("From"), 1);
            prop_assert_eq!(count("Bcc"), 0);
            prop_assert!(block.len() <= 12);
            prop_assert_eq!(message::read(&raw).faults, []);
        }
    }
}
