//! Messages as people and programs write them, with the class that a careful reader would give (`tests/cases.txt`).

use super::{Category, Class, classify};
use crate::message::Automatic;

const CASES: &str = include_str!("tests/cases.txt");

fn category(name: &str) -> Category {
    let all = [Category::CustomerSupport, Category::Technical, Category::Partnership, Category::Other];
    all.into_iter().find(|category| category.as_str() == name).unwrap()
}

fn automatic(name: &str) -> Option<Automatic> {
    match name {
        "-" => None,
        "DeliveryReport" => Some(Automatic::DeliveryReport),
        "Complaint" => Some(Automatic::Complaint),
        "Reply" => Some(Automatic::Reply),
        "Generated" => Some(Automatic::Generated),
        "List" => Some(Automatic::List),
        other => panic!("no such kind: {other}"),
    }
}

// rules: RECV-20
#[test]
fn messages_get_the_class_that_a_reader_would_give_them() {
    let mut wrong = Vec::new();
    let lines = CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, urgent, kind, sender, subject, text] = fields.as_slice() else { panic!("{line}") };
        let expected = Class { category: category(name), urgent: *urgent == "urgent" };
        let found = classify(sender, subject, &text.replace("\\n", "\n"), automatic(kind));
        if found != expected {
            wrong.push(format!("{line}\n  is {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn long_and_strange_texts_are_read_only_so_far() {
    let late = "word ".repeat(2_000) + "refund my order my account";
    assert_eq!(classify("a@mail.test", "Hello", &late, None), Class::default());
    let odd = "\u{0}\u{301}é\u{10ffff}🙂".repeat(5_000);
    assert_eq!(classify(&odd, &odd, &odd, None), Class::default());
    let repeated = "urgent ".repeat(400);
    assert!(classify("a@mail.test", "x", &repeated, None).urgent);
    assert!(!classify("a@mail.test", "x", "urgent", None).urgent);
}
