//! Tests of filter expressions.

use super::*;

mod mail_stub;
mod round_trip;

use expression::fold;
use mail_stub::Stub;

fn filter(text: &str) -> Filter {
    Filter::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn refusal(text: &str) -> String {
    Filter::parse(text).expect_err(text).to_string()
}

#[track_caller]
fn assert_matches(expected: bool, expressions: &[&str]) {
    for text in expressions {
        assert_eq!(filter(text).matches(&Stub::invoice()), expected, "{text}");
    }
}

/// rules: LBL-8, LBL-13
#[test]
fn the_example_of_the_contract_works() {
    let example =
        filter(r#"from:@acme.com and (subject:invoice or has:attachment) and not body:"unsubscribe""#);
    assert!(example.matches(&Stub::invoice()));
    assert!(!example.matches(&Stub { body: "click to UNSUBSCRIBE", ..Stub::invoice() }));
    assert!(!example.matches(&Stub { from: &[("", "ann@acme.com.evil.example")], ..Stub::invoice() }));
}

/// rules: LBL-9, LBL-13
#[test]
fn addresses_match_by_domain_whole_or_part() {
    assert_matches(
        true,
        &[
            "from:@acme.com",
            "from:@ACME.com.",
            "from:ann.lee@acme.com",
            "from:ANN.Lee@Acme.com",
            "from:lee",
            "from:lee@",
            "from:\"ann lee (sales)\"",
            "to:@bücher.example",
            "to:@xn--bcher-kva.example",
            "to:second@x.org",
            "cc:JÖRG",
        ],
    );
    assert_matches(
        false,
        &[
            "from:@cme.com",
            "from:@mail.acme.com",
            "from:@com",
            "from:lee@acme.com",
            "from:nn@",
            "to:ann",
            "cc:@acme.com",
        ],
    );
}

/// rules: LBL-9, LBL-13
#[test]
fn texts_match_in_any_case() {
    assert_matches(
        true,
        &[
            "subject:INVOICE",
            "subject:\"invoice 42\"",
            "body:grüße",
            "body:GRÜSSE or body:GRÜßE",
            "subject:4",
        ],
    );
    assert_matches(false, &["subject:invoices", "body:invoice", "subject:\"42 invoice\""]);
}

/// rules: LBL-9
#[test]
fn categories_and_labels_match_as_whole_words() {
    assert_matches(true, &["category:Technical", "label:to-pay", "label:VIP"]);
    assert_matches(false, &["category:tech", "category:other", "label:pay", "label:vi"]);
    let bare = Stub { category: None, labels: &[], ..Stub::invoice() };
    assert!(!filter("category:technical or label:vip").matches(&bare));
}

/// rules: LBL-9
#[test]
fn marks_match() {
    assert_matches(true, &["has:attachment", "is:unread", "is:Urgent", "not is:read", "not has:link"]);
    assert_matches(false, &["has:link", "is:read", "is:starred", "is:automatic"]);
}

/// rules: LBL-9, LBL-13
#[test]
fn days_begin_at_midnight_utc() {
    let midnight = Stub { date: 1_767_225_600_000_000, ..Stub::invoice() };
    assert!(filter("after:2026-01-01").matches(&midnight));
    assert!(!filter("before:2026-01-01").matches(&midnight));
    let earlier = Stub { date: 1_767_225_599_999_999, ..Stub::invoice() };
    assert!(filter("before:2026-01-01").matches(&earlier));
    assert!(!filter("after:2026-01-01").matches(&earlier));
    let extremes = [Stub { date: i64::MIN, ..Stub::invoice() }, Stub { date: i64::MAX, ..Stub::invoice() }];
    assert!(filter("before:0000-01-01").matches(&extremes[0]));
    assert!(filter("after:9999-12-31").matches(&extremes[1]));
}

/// rules: LBL-9
#[test]
fn sizes_compare_strictly() {
    assert_matches(
        true,
        &["larger:2047", "smaller:2049b", "larger:1kb", "smaller:1mb", "smaller:3K", "smaller:1GB"],
    );
    assert_matches(false, &["larger:2kb", "smaller:2kb", "larger:2048bytes", "smaller:0"]);
}

/// rules: LBL-8
#[test]
fn operators_bind_as_promised() {
    for (text, tidy) in [
        ("is:read or is:urgent and is:starred", "is:read or is:urgent and is:starred"),
        ("(is:read OR is:urgent) And is:starred", "(is:read or is:urgent) and is:starred"),
        ("NOT is:read and is:urgent", "not is:read and is:urgent"),
        ("not(is:read and is:urgent)", "not (is:read and is:urgent)"),
        ("is:read is:urgent or is:starred has:link", "is:read and is:urgent or is:starred and has:link"),
        ("is:read not is:urgent", "is:read and not is:urgent"),
        ("not not is:read", "is:read"),
        ("not (not (is:read))", "is:read"),
        ("((is:read))(is:urgent)", "is:read and is:urgent"),
        ("is:read and (is:urgent and has:link)", "is:read and (is:urgent and has:link)"),
        ("From:Bob", "from:bob"),
        ("subject:re:hello", "subject:re:hello"),
        (r"subject:a\b", r"subject:a\b"),
        (r#"subject:"a \"b\" \\ c""#, r#"subject:"a \"b\" \\ c""#),
        (r#"subject:"plain""#, "subject:plain"),
        ("subject:\"and\"", "subject:and"),
        ("larger:1024kb smaller:1025", "larger:1mb and smaller:1025"),
        ("larger:0", "larger:0"),
        ("\u{3000}is:read\n", "is:read"),
    ] {
        assert_eq!(filter(text).to_string(), tidy, "{text}");
        assert_eq!(filter(tidy), filter(text), "{text}");
    }
    assert_matches(true, &["is:urgent or is:read and is:starred", "not is:read is:urgent"]);
    assert_matches(false, &["(is:urgent or is:read) and is:starred", "not (is:read or is:urgent)"]);
}

/// rules: LBL-9, LBL-10
#[test]
fn faults_name_their_column() {
    for (text, message) in [
        ("", "column 1: expected a term such as from:@example.com"),
        ("from:a subject:", "column 16: expected a value after \"subject:\""),
        ("subject: invoice", "column 9: expected a value after \"subject:\""),
        ("subject:(a or b)", "column 9: expected a value after \"subject:\""),
        ("subject:\"\"", "column 9: expected a value after \"subject:\""),
        ("from:a and", "column 11: expected a term after \"and\""),
        ("from:a or or from:b", "column 11: expected a term after \"or\""),
        ("not", "column 4: expected a term after \"not\""),
        ("and from:a", "column 1: expected a term before \"and\""),
        ("or", "column 1: expected a term before \"or\""),
        ("()", "column 2: expected a term after \"(\""),
        ("(from:a", "column 1: this \"(\" is not closed"),
        ("from:a)", "column 7: this \")\" has no matching \"(\""),
        (") from:", "column 1: this \")\" has no matching \"(\""),
        (
            "für:a",
            "column 1: unknown field \"für\"; the fields are from, to, cc, subject, body, category, label, has, is, before, after, larger, smaller",
        ),
        ("body:ü invoice", "column 8: expected a term such as subject:invoice, found \"invoice\""),
        ("is:read -from:bob", "column 9: write \"not from:\" instead of \"-from:\""),
        ("\"invoice\"", "column 1: expected a field before the quoted text, as in subject:\"…\""),
        ("subject:\"invoice", "column 9: this quotation mark is not closed"),
        ("subject:\"in\\", "column 12: a backslash in quotation marks must be written as \\\\"),
        (r#"subject:"in\voice""#, "column 12: a backslash in quotation marks must be written as \\\\"),
        ("subject:in\"voice\"", "column 11: put the whole value in quotation marks"),
        ("from:@", "column 6: expected a domain such as @example.com"),
        ("from:@acme..com", "column 6: expected a domain such as @example.com"),
        ("to:a,b@acme.com", "column 4: expected an address such as name@example.com"),
        ("has:fun", "column 5: expected one of attachment, link after \"has:\""),
        ("is:new", "column 4: expected one of read, unread, starred, urgent, automatic after \"is:\""),
    ] {
        assert_eq!(refusal(text), message, "{text}");
    }
    for day in ["2026-02-30", "2026-1-1", "01-01-2026", "2026-01-01-01", "+026-01-01", "today", "2026-01"] {
        assert_eq!(
            refusal(&format!("before:{day}")),
            "column 8: expected a date such as 2026-01-31 after \"before:\""
        );
    }
    for size in ["big", "5tb", "mb", "-1", "1.5mb", "17179869184gb", "99999999999999999999"] {
        assert_eq!(
            refusal(&format!("larger:{size}")),
            "column 8: expected a size such as 100kb or 5mb after \"larger:\""
        );
    }
}

/// rules: LBL-12
#[test]
fn depth_and_number_of_terms_are_bounded() {
    let nested = |depth: usize| format!("{}is:read{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Filter::parse(&nested(MAX_DEPTH)).is_ok());
    assert_eq!(refusal(&nested(MAX_DEPTH + 1)), "column 33: parentheses may be nested at most 32 deep");
    assert_eq!(refusal(&"(".repeat(1_000_000)), "column 33: parentheses may be nested at most 32 deep");
    assert!(Filter::parse(&["(is:read)"; MAX_TERMS].join(" ")).is_ok());
    assert_eq!(
        refusal(&["is:read"; MAX_TERMS + 1].join(" ")),
        "column 513: an expression may have at most 64 terms"
    );
    assert_eq!(filter(&format!("{}is:read", "not ".repeat(100_001))), filter("not is:read"));
}

/// Needles that a naive search would begin to compare at every single character of the hay, 64 of them.
/// rules: LBL-12
#[test]
fn checking_a_large_mail_is_quick() {
    let body: &'static str = "a".repeat(1 << 20).leak();
    let needle = "a".repeat(2000);
    let terms: Vec<String> = (0..MAX_TERMS).map(|number| format!("body:{needle}{number}b")).collect();
    let mail = Stub { body, ..Stub::invoice() };
    // 134 billion comparisons for a naive search: the test would not end.
    assert!(!filter(&terms.join(" or ")).matches(&mail));
}

/// rules: LBL-11
#[test]
fn expressions_are_told_from_instructions() {
    for text in ["is:read", " ( not from:a )", "from:a", "FROM:@acme.com is:unread"] {
        assert_eq!(parse_rules(text), Ok(Rules::Expression(filter(text))), "{text}");
    }
    for text in [
        "Mails from customers who ask for a refund",
        "Subject: anything about invoices",
        "Invoices (PDF) and receipts",
        "(Only) urgent mails",
        "not urgent",
        "not: important",
        "Whatever mentions \"from:bob\" in quotes",
        "Ask mailto:bob, reply-to:bob",
        "Mail whose subject contains invoice or receipt",
        "subject contains anything about money and invoices",
        "Anything from Bob and to Alice",
        "is urgent",
        "body = what people write below the subject",
        "Send to: Bob :) to:)",
        "https://acme.com and its mails",
        "5\" screens",
        "at 10:30 every day",
        "ratio 3:4",
    ] {
        let expected =
            if text.starts_with("mailto") { None } else { Some(Rules::Instruction(text.to_owned())) };
        assert_eq!(parse_rules(text).ok(), expected, "{text}");
    }
    assert_eq!(parse_rules(""), Ok(Rules::Instruction(String::new())));
    assert_eq!(parse_rules(" \n tidy me "), Ok(Rules::Instruction("tidy me".to_owned())));
}

/// rules: LBL-11
#[test]
fn a_faulty_expression_is_not_taken_for_an_instruction() {
    for (text, column) in [
        ("from:@acme.com and", 19),
        ("sender:@acme.com", 1),
        ("mailto:bob and so on", 1),
        ("(sender:bob)", 2),
        ("not (sender:bob)", 6),
        ("NOT sender:bob", 5),
        ("not not\tsender:bob", 9),
        ("everything from:bob", 1),
        ("everything (from:bob)", 1),
        ("-from:bob", 1),
        ("invoice -from:bob", 1),
        ("body:\"unclosed", 6),
        ("5\" screens from:bob", 1),
        ("\"quoted\" from:bob", 1),
        ("subject:(a b)", 9),
        ("from contains \"@bank.test\"", 1),
        ("(subject = invoice)", 2),
        ("not from is bob", 5),
        ("subject does not contain invoice", 1),
        ("refunds and from=bob", 1),
        ("has:attachment and subject contains invoice", 20),
        ("from: bob@acme.com", 1),
        ("has attachment and is unread", 1),
        ("invoice or sender:bob", 1),
        ("larger > 5mb", 1),
    ] {
        assert_eq!(parse_rules(text).map_err(|error| error.column), Err(column), "{text}");
    }
}

#[test]
fn folding_twice_is_folding_once() {
    for c in char::MIN..=char::MAX {
        let once = fold(c.encode_utf8(&mut [0; 4]));
        assert_eq!(fold(&once), once, "{c:?}");
    }
}
