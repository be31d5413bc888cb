//! Answers and forwarded messages.

use super::person;
use crate::compose::Person;
use crate::compose::quote::{
    BodyText, MAX_REFERENCES, Original, Threading, forward, forward_subject, join, reply_recipients,
    reply_subject, split, threading, unstyled,
};

#[test]
fn marks_of_subjects_are_not_doubled() {
    for (original, answer) in [
        ("Hello", "Re: Hello"),
        ("Re: Hello", "Re: Hello"),
        ("RE[2]: Hello", "RE[2]: Hello"),
        ("  re: Hello ", "re: Hello"),
        ("AW: Hallo", "AW: Hallo"),
        ("Fwd: Hello", "Re: Fwd: Hello"),
        ("Report: done", "Re: Report: done"),
        ("", "Re:"),
    ] {
        assert_eq!(reply_subject(original), answer, "{original}");
    }
    for (original, forwarded) in [
        ("Hello", "Fwd: Hello"),
        ("FW: Hello", "FW: Hello"),
        ("Re: Hello", "Fwd: Re: Hello"),
        ("WG: Hallo", "WG: Hallo"),
    ] {
        assert_eq!(forward_subject(original), forwarded, "{original}");
    }
}

#[test]
fn subjects_that_nobody_chose_fit_once_encoded() {
    let encoded = |subject: &str| crate::compose::header::subject(subject).map(|value| value.len());
    let words = format!("{}end", "word ".repeat(199));
    for original in [
        "x".repeat(900),
        "x".repeat(998),
        words.clone(),
        "é".repeat(998),
        "日本語".repeat(300),
        "🦀".repeat(998),
        format!("{}{}", "a".repeat(795), " b".repeat(101)),
    ] {
        for subject in [reply_subject(&original), forward_subject(&original)] {
            assert!(encoded(&subject).is_ok(), "{subject}: {:?}", encoded(&subject));
            assert!(subject.ends_with("...") || subject.ends_with('…'), "{subject}");
        }
    }
    assert!(reply_subject(&words).starts_with("Re: word word"));
    assert!(reply_subject(&words).len() > 990, "a plain subject keeps all that fits");
    let fitting = "y".repeat(700);
    assert_eq!(reply_subject(&fitting), format!("Re: {fitting}"));
}

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[test]
fn an_answer_refers_to_the_whole_conversation() {
    let chain = threading(Some("c@x"), Some("b@x"), &ids(&["a@x", "b@x"]));
    assert_eq!(chain, Threading { in_reply_to: Some("c@x".into()), references: ids(&["a@x", "b@x", "c@x"]) });
    // Without References, what the original answered itself is all that is known.
    assert_eq!(threading(Some("c@x"), Some("b@x"), &[]).references, ids(&["b@x", "c@x"]));
    assert_eq!(threading(None, None, &[]), Threading::default());
    let odd = threading(Some("not an id"), None, &ids(&["a@x", "b\u{fc}@x", "a@x"]));
    assert_eq!(odd, Threading { in_reply_to: None, references: ids(&["a@x"]) });
}

#[test]
fn a_long_conversation_keeps_its_first_and_last_ids() {
    let many: Vec<String> = (0..500).map(|number| format!("{number}@x")).collect();
    let kept = threading(Some("parent@x"), None, &many).references;
    assert_eq!(kept.len(), MAX_REFERENCES);
    assert_eq!(kept.first().map(String::as_str), Some("0@x"));
    assert_eq!(kept.last().map(String::as_str), Some("parent@x"));
    assert_eq!(kept[kept.len() - 2], "499@x");
    let long: Vec<String> = (0..30).map(|number| format!("{number}{}@x", "y".repeat(480))).collect();
    let kept = threading(Some("parent@x"), None, &long).references;
    assert!(kept.iter().map(|id| id.len() + 3).sum::<usize>() <= 6000);
    assert_eq!((kept.first(), kept.last().map(String::as_str)), (long.first(), Some("parent@x")));
}

fn addresses(people: &[Person]) -> Vec<&str> {
    people.iter().map(|person| person.address.as_str()).collect()
}

#[test]
fn answers_go_where_the_author_wants_them() {
    let mut original = Original {
        from: Some(person("Bob", "bob@example.com")),
        to: vec![
            person("", "me@agents.test"),
            person("", "carol@example.com"),
            person("", "BOB@example.com"),
        ],
        cc: vec![
            person("", "dave@example.com"),
            person("", "Carol@Example.com"),
            person("", "not an address"),
        ],
        ..Original::default()
    };
    let own = ["Me@agents.test"];
    let answer = reply_recipients(&original, &own, false);
    assert_eq!((addresses(&answer.to), answer.cc.len()), (vec!["bob@example.com"], 0));
    let all = reply_recipients(&original, &own, true);
    assert_eq!(addresses(&all.to), ["bob@example.com", "carol@example.com"]);
    assert_eq!(addresses(&all.cc), ["dave@example.com"]);
    original.reply_to = vec![person("List", "list@example.com")];
    assert_eq!(addresses(&reply_recipients(&original, &own, false).to), ["list@example.com"]);
}

#[test]
fn an_answer_to_oneself_goes_to_whom_one_wrote() {
    let mut original = Original {
        from: Some(person("", "me@agents.test")),
        to: vec![person("", "bob@example.com")],
        ..Original::default()
    };
    assert_eq!(addresses(&reply_recipients(&original, &["me@agents.test"], false).to), ["bob@example.com"]);
    original.to = vec![person("", "me@agents.test")];
    assert_eq!(addresses(&reply_recipients(&original, &["me@agents.test"], true).to), ["me@agents.test"]);
    assert!(reply_recipients(&Original::default(), &[], true).to.is_empty());
}

#[test]
fn a_forwarded_mail_carries_the_original() {
    let original = Original {
        from: Some(person("Bob <b>", "bob@example.com")),
        to: vec![person("", "me@agents.test")],
        date: Some(1_793_620_800_000_000),
        subject: "Offer\nFrom: forged@example.com".to_owned(),
        text: Some("See <this>.".to_owned()),
        ..Original::default()
    };
    let bodies = forward(&original, Some("What do you think?"), None);
    assert_eq!(
        bodies.text,
        "What do you think?\n\n---------- Forwarded message ----------\nFrom: Bob <b> <bob@example.com>\n\
         Date: Mon, 2 Nov 2026 12:00:00 +0000\nSubject: Offer From: forged@example.com\nTo: me@agents.test\n\n\
         See <this>."
    );
    assert_eq!(bodies.html, None);
    let html = forward(&original, None, Some("<p>Look</p>")).html.unwrap();
    assert!(html.starts_with("<p>Look</p>"));
    assert!(html.contains("<b>From:</b> Bob &lt;b&gt; &lt;bob@example.com&gt;<br>"), "{html}");
    assert!(html.ends_with("See &lt;this&gt;.</div>"), "{html}");
}

#[test]
fn html_that_is_forwarded_has_a_text_beside_it() {
    let original = Original { html: Some("<p>Hello <b>you</b></p>".to_owned()), ..Original::default() };
    let bodies = forward(&original, Some("a < b"), None);
    assert!(bodies.text.ends_with("Hello you"), "{}", bodies.text);
    let html = bodies.html.unwrap();
    assert!(html.starts_with("<div style=\"white-space: pre-wrap\">a &lt; b</div>"), "{html}");
    assert!(html.ends_with("<p>Hello <b>you</b></p>"));
}

#[test]
fn what_the_sender_says_can_be_taken_off_and_put_back() {
    let plain =
        Original { subject: "Logs".into(), text: Some("They look odd.\n".into()), ..Original::default() };
    let bodies = forward(&plain, Some("See below.\n\nAda"), None);
    let (said, below) = split(BodyText::Text(&bodies.text)).expect("it is forwarded");
    assert_eq!(said, BodyText::Text("See below.\n\nAda"));
    assert_eq!(join(said, below), (bodies.text.clone(), false));
    let BodyText::Text(rest) = below else { panic!("text stays text") };
    assert_eq!(join(BodyText::Text(" "), below), (rest.to_owned(), false));
    // Text below HTML becomes HTML, and nothing in it is taken for markup.
    let odd = Original { text: Some("a < b".into()), ..plain.clone() };
    let odd = forward(&odd, None, None);
    let (_, below) = split(BodyText::Text(&odd.text)).expect("it is forwarded");
    let (joined, is_html) = join(BodyText::Html("<b>See</b>"), below);
    assert!(is_html && joined.starts_with("<b>See</b>") && joined.contains("a &lt; b"), "{joined}");

    let page = Original { html: Some("<table style=\"color:red\"></table>".into()), ..plain };
    let html = forward(&page, Some("One\nTwo"), None).html.expect("HTML stays HTML");
    let (said, below) = split(BodyText::Html(&html)).expect("it is forwarded");
    assert_eq!(join(said, below), (html.clone(), true));
    let BodyText::Html(words) = said else { panic!("HTML stays HTML") };
    assert_eq!(unstyled(words), "One<br>Two");
    assert_eq!(unstyled("<p>One</p>"), "<p>One</p>");
    let (again, _) = join(BodyText::Text("Three"), below);
    assert!(again.contains("Three") && again.ends_with("<table style=\"color:red\"></table>"), "{again}");

    // Not at the beginning of a line, and not where nothing is forwarded.
    assert_eq!(split(BodyText::Text("say ---------- Forwarded message ----------\n")), None);
    assert_eq!(split(BodyText::Html("<p>Hello</p>")), None);
}
