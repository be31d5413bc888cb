//! Properties: what is written reads back, nothing panics, and the algebra holds.

use jiff::civil::date;
use proptest::prelude::*;

use super::super::expression::{AddressField, AddressPattern, MARK_TERMS, Node, Term, fold};
use super::super::{Filter, MAX_DEPTH, parse_rules};
use super::Stub;

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9]{1,8}", "[ -~äß用\u{3000}\n]{1,12}", any::<String>()]
        .prop_map(|text| fold(&text))
        .prop_filter("a value is never empty", |text| !text.is_empty())
}

fn pattern() -> impl Strategy<Value = AddressPattern> {
    prop_oneof![
        "[a-z]{1,8}\\.org".prop_map(AddressPattern::Domain),
        "[a-z+ü]{1,8}@[a-z]{1,8}\\.org".prop_map(AddressPattern::Exact),
        text()
            .prop_filter("would be an address", |text| !text.contains('@'))
            .prop_map(AddressPattern::Contains),
        "[a-z]{1,8}@".prop_map(AddressPattern::Contains),
    ]
}

fn term() -> impl Strategy<Value = Term> {
    let field = prop::sample::select(vec![AddressField::From, AddressField::To, AddressField::Cc]);
    let day = (0..=9999_i16, 1..=12_i8, 1..=28_i8).prop_map(|(year, month, day)| date(year, month, day));
    prop_oneof![
        (field, pattern()).prop_map(|(field, pattern)| Term::Address(field, pattern)),
        text().prop_map(Term::Subject),
        text().prop_map(Term::Body),
        text().prop_map(Term::Category),
        text().prop_map(Term::Label),
        prop::sample::select(MARK_TERMS.to_vec()).prop_map(Term::Mark),
        day.clone().prop_map(Term::Before),
        day.prop_map(Term::After),
        any::<u64>().prop_map(Term::Larger),
        (0..5000_u64).prop_map(|kilobytes| Term::Smaller(kilobytes << 10)),
    ]
}

fn node() -> impl Strategy<Value = Node> {
    term().prop_map(Node::Term).prop_recursive(5, 48, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(Node::All),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Node::Any),
            inner.prop_map(|node| match node {
                Node::Not(inside) => *inside,
                other => Node::Not(Box::new(other)),
            }),
        ]
    })
}

fn count_terms(node: &Node) -> usize {
    match node {
        Node::All(children) | Node::Any(children) => children.iter().map(count_terms).sum(),
        Node::Not(child) => count_terms(child),
        Node::Term(_) => 1,
    }
}

proptest! {
    #[test]
    fn a_shown_filter_reads_back(root in node()) {
        prop_assume!(count_terms(&root) <= super::MAX_TERMS);
        let filter = Filter { root };
        let shown = filter.to_string();
        let parsed = Filter::parse(&shown);
        prop_assert_eq!(parsed, Ok(filter), "{}", shown);
    }

    #[test]
    fn any_text_is_read_without_panic(text in any::<String>()) {
        let _ = Filter::parse(&text);
        let _ = parse_rules(&text);
    }

    #[test]
    fn any_row_of_tokens_is_read_and_its_fault_lies_inside(
        tokens in prop::collection::vec(prop::sample::select(vec![
            "(", ")", "and ", "or ", "not ", "is:read ", "from:a@b.c ", "subject:\"x y\" ", "body:",
            "word ", "\"", " ",
        ]), 0..40)
    ) {
        let text = tokens.concat();
        match Filter::parse(&text) {
            Ok(filter) => prop_assert_eq!(Filter::parse(&filter.to_string()), Ok(filter)),
            Err(error) => prop_assert!((1..=text.chars().count() + 1).contains(&error.column)),
        }
    }

    #[test]
    fn the_deepest_expression_reads_back(levels in prop::collection::vec(0..5_usize, 0..=MAX_DEPTH)) {
        let mut text = "is:read".to_owned();
        for level in levels {
            let shape = ["is:urgent and", "not", "has:link or", "is:urgent or has:link and not", ""][level];
            text = format!("{shape} ({text})");
        }
        prop_assume!(text.matches(':').count() <= super::MAX_TERMS);
        let filter = super::filter(&text);
        let shown = filter.to_string();
        prop_assert_eq!(super::filter(&shown), filter);
    }

    #[test]
    fn negation_turns_the_answer_around(root in node()) {
        let filter = Filter { root: root.clone() };
        let negated = Filter { root: Node::Not(Box::new(root)) };
        let mail = Stub::invoice();
        prop_assert_ne!(filter.matches(&mail), negated.matches(&mail));
    }

    #[test]
    fn every_part_of_a_subject_is_found(from in 0..15_usize, length in 1..15_usize) {
        let part: String = Stub::invoice().subject.chars().skip(from).take(length).collect();
        let filter = Filter { root: Node::Term(Term::Subject(fold(&part))) };
        prop_assert!(filter.matches(&Stub::invoice()));
    }
}
