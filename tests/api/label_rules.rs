//! The rules of labels: expressions, instructions, and what is wrong with them.

use model::Plan;
use serde_json::json;
use testkit::{Engine, Server, both_engines};

use super::{
    help::{assert_refused, details},
    labels::labels_of,
};

const FIELDS: &str =
    "the fields are from, to, cc, subject, body, category, label, has, is, before, after, larger, smaller";

/// rules: LBL-10
#[both_engines]
async fn a_fault_is_named_by_its_column(engine: Engine) {
    let unknown = format!("column 1: unknown field \"sender\"; {FIELDS}");
    let in_parentheses = format!("column 6: unknown field \"sender\"; {FIELDS}");
    let deep = format!("{}is:read{}", "(".repeat(33), ")".repeat(33));
    let terms = ["to:a"; 65].join(" ");
    let cases = [
        ("from:@acme.com and", "column 19: expected a term after \"and\""),
        ("body:üüü and subject:", "column 22: expected a value after \"subject:\""),
        ("from:a 😀😀 or is:new", "column 8: expected a term such as subject:😀😀, found \"😀😀\""),
        ("(from:a or from:b", "column 1: this \"(\" is not closed"),
        ("from:a)", "column 7: this \")\" has no matching \"(\""),
        (
            "is:read is:new",
            "column 12: expected one of read, unread, starred, urgent, automatic after \"is:\"",
        ),
        (
            "from contains \"@acme.com\"",
            "column 1: write from:\"@acme.com\" here: a colon joins a field and its value, without spaces",
        ),
        (
            "is:read and subject = invoice",
            "column 13: write subject:invoice here: a colon joins a field and its value, without spaces",
        ),
        ("refunds or sender:bob", "column 1: expected a term such as subject:refunds, found \"refunds\""),
        ("has:fun", "column 5: expected one of attachment, link after \"has:\""),
        ("before:yesterday", "column 8: expected a date such as 2026-01-31 after \"before:\""),
        ("larger:5tb", "column 8: expected a size such as 100kb or 5mb after \"larger:\""),
        ("subject:\"open", "column 9: this quotation mark is not closed"),
        ("from:@", "column 6: expected a domain such as @example.com"),
        ("-from:bob", "column 1: write \"not from:\" instead of \"-from:\""),
        ("from:a from:b@@c", "column 13: expected an address such as name@example.com"),
        ("sender:@acme.com", unknown.as_str()),
        ("not (sender:bob)", in_parentheses.as_str()),
        (deep.as_str(), "column 33: parentheses may be nested at most 32 deep"),
        (terms.as_str(), "column 321: an expression may have at most 64 terms"),
    ];
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let labels = labels_of(&tenant.key).await;
    let made = tenant.key.post(&labels, json!({ "name": "Kept", "rules": "is:read" })).await.ok();
    let one = format!("{labels}/{}", made["id"].as_str().unwrap());
    for (rules, message) in cases {
        let answer = tenant.key.post(&labels, json!({ "name": "New", "rules": rules })).await;
        assert_refused(&answer, &[("rules", message)]);
        let answer = tenant.key.put(&one, json!({ "rules": rules })).await;
        assert_refused(&answer, &[("rules", message)]);
    }
    assert_eq!(tenant.key.get(&labels).await.ok(), json!([made]));
    // Too long and faulty: both are told.
    let long = format!("from:{} and", "a".repeat(500));
    let answer = tenant.key.post(&labels, json!({ "name": "New", "rules": long })).await;
    let mut told: Vec<String> = details(&answer).into_iter().map(|(_, message)| message).collect();
    told.sort();
    assert_eq!(told, ["column 510: expected a term after \"and\"", "length is greater than 500"]);
}

/// rules: LBL-11
#[both_engines]
async fn what_is_no_expression_is_kept_as_written(engine: Engine) {
    let texts = [
        "",
        "  Mails from customers who ask for a refund\n",
        "Subject: anything about invoices",
        "not urgent",
        "Whatever mentions \"from:bob\" in quotes",
        "https://acme.com and its mails",
        "at 10:30 every day",
        "日本語の指示 😀",
        "'; DROP TABLE label; --",
        "\u{202e}reversed\u{200b}",
        "tab\tand\nline",
    ];
    let expressions = [
        "from:@acme.com and (subject:invoice or has:attachment) and not body:\"unsubscribe\"",
        "FROM:Bob NOT Is:UNREAD",
        "category:technical label:vip before:2026-01-01 after:2020-02-29 larger:1kb smaller:2GB",
        "to:@bücher.example cc:someone@x.org",
        "  is:read  ",
    ];
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let labels = labels_of(&tenant.key).await;
    for (number, text) in texts.iter().chain(&expressions).enumerate() {
        let body = json!({ "name": format!("L{number}"), "rules": text });
        let made = tenant.key.post(&labels, body).await.ok();
        assert_eq!(made["rules"], *text);
    }
    let listed = tenant.key.get(&labels).await.ok();
    for (label, text) in listed.as_array().unwrap().iter().zip(texts.iter().chain(&expressions)) {
        assert_eq!(label["rules"], *text);
    }
}
