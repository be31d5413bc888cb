//! Search: the query language, filters, pages, what is found and what is not.

use serde_json::{Value, json};
use testkit::{Engine, Server, ServerOptions, both_engines};

use super::{
    help::{assert_refuses_fields, encoded},
    mails::{Inbox, dated, message, new_label, plain, texts, with_file},
};

/// Mails to search in, in the order of their arrival.
async fn fill(server: &Server, inbox: &Inbox) {
    let eight_bit =
        "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit";
    for raw in [
        dated("Invoice 2026-07", "Your payment is past due. Please pay 100 EUR.", 1),
        dated("Re: lunch", "The due date is past. Draft attached? No.", 2),
        message(
            "Café menu",
            &format!("{eight_bit}\nDate: 3 Jul 2026 10:00 +0000"),
            "Crème brûlée, naïve résumé, ÅNGSTRÖM straße.\r\n",
        ),
        message(
            "東京の会議",
            &format!("{eight_bit}\nDate: 4 Jul 2026 10:00 +0000"),
            "明日の会議は東京タワーで行います。\r\n",
        ),
        with_file("Report draft", "q3.csv", "text/csv", b"1;2")
            .replace("Subject:", "Date: 5 Jul 2026 10:00 +0000\r\nSubject:"),
        message(
            "Reporting",
            "From: Bob Builder <bob.builder@site.example>\nDate: 6 Jul 2026 10:00 +0000",
            "C++ and C#; a_b; foo-bar; x@y.example; it's \"quoted\" (ok) & 100%.\r\n",
        ),
        message(
            "ΟΔΟΣ",
            &format!("{eight_bit}\nDate: 7 Jul 2026 10:00 +0000"),
            "οδός \u{1f150} \u{1e900}\u{1e901} ﬁne\r\n",
        ),
    ] {
        server.clock.advance(1);
        server.receive(&inbox.address, raw).await;
    }
}

/// Queries and the subjects that they find, the last that arrived first. The same for both engines.
const TABLE: &[(&str, &[&str])] = &[
    ("invoice", &["Invoice 2026-07"]),
    ("INVOICE", &["Invoice 2026-07"]),
    ("past due", &["Re: lunch", "Invoice 2026-07"]),
    ("\"past due\"", &["Invoice 2026-07"]),
    ("\"due date\" past", &["Re: lunch"]),
    ("draft", &["Report draft", "Re: lunch"]),
    ("draft -lunch", &["Report draft"]),
    ("draft -\"due date\"", &["Report draft"]),
    ("report", &["Report draft"]),
    ("report*", &["Reporting", "Report draft"]),
    ("repor", &[]),
    ("subject:draft", &["Report draft"]),
    ("-subject:draft draft", &["Re: lunch"]),
    ("subject:\"report draft\"", &["Report draft"]),
    ("from:bob", &["Reporting"]),
    ("from:builder@site.example", &["Reporting"]),
    ("from:bob.builder@site.example reporting", &["Reporting"]),
    ("from:bob -c", &[]),
    ("to:me from:site", &["Reporting"]),
    ("to:bob", &[]),
    ("bob", &["Reporting"]),
    ("cafe", &["Café menu"]),
    ("CAFÉ", &["Café menu"]),
    ("creme brulee", &["Café menu"]),
    ("\"naive resume\"", &["Café menu"]),
    ("angstrom", &["Café menu"]),
    ("straße", &["Café menu"]),
    ("東京", &["東京の会議"]),
    ("会議は東京", &["東京の会議"]),
    ("東京会議", &[]),
    ("subject:会議", &["東京の会議"]),
    ("タワ*", &["東京の会議"]),
    ("οδος", &["ΟΔΟΣ"]),
    ("ΟΔΟΣ", &["ΟΔΟΣ"]),
    ("\u{1f150}", &["ΟΔΟΣ"]),
    ("\u{1e900}\u{1e901}", &["ΟΔΟΣ"]),
    ("fine", &["ΟΔΟΣ"]),
    ("foo-bar", &["Reporting"]),
    ("\"foo bar\"", &["Reporting"]),
    ("a_b", &["Reporting"]),
    ("x@y.example", &["Reporting"]),
    ("it's", &["Reporting"]),
    ("100", &["Reporting", "Invoice 2026-07"]),
    ("has:attachment", &["Report draft"]),
    ("-has:attachment draft", &["Re: lunch"]),
    ("has:attachment -has:attachment", &[]),
    ("has:attachment lunch", &[]),
    ("after:2026-07-06", &["ΟΔΟΣ", "Reporting"]),
    ("before:2026-07-02", &["Invoice 2026-07"]),
    ("after:2026-07-02 before:2026-07-03 past", &["Re: lunch"]),
    ("after:2026-07-02T10:00:00Z before:2026-07-02T10:00:01Z", &["Re: lunch"]),
    ("label:bills", &["Invoice 2026-07"]),
    ("label:bills label:urgent", &[]),
    ("label:none", &[]),
    ("-draft -report* -from:bob", &["ΟΔΟΣ", "東京の会議", "Café menu", "Invoice 2026-07"]),
    ("is:unread from:bob", &["Reporting"]),
    ("is:read", &[]),
    ("-is:unread", &[]),
    ("is:starred", &[]),
    ("-is:starred from:bob", &["Reporting"]),
    ("From:bob", &["Reporting"]),
    ("-before:2026-07-06", &["ΟΔΟΣ", "Reporting"]),
    ("from:! reporting", &[]),
    ("- * '", &[]),
    ("!?", &[]),
    ("\"\"", &[]),
    ("past AND due", &[]),
    ("past OR nothing", &[]),
    ("NEAR(past due)", &[]),
    ("' | & ! <-> :*", &[]),
    ("past ') OR 1=1 --", &[]),
];

// rules: SEARCH-1
#[both_engines]
async fn both_engines_find_the_same(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    new_label(&inbox, "Bills", "subject:invoice").await;
    new_label(&inbox, "Urgent", "").await;
    fill(&server, &inbox).await;
    for (query, expected) in TABLE {
        assert_eq!(inbox.search(query).await, *expected, "{query}");
    }
    for odd in [
        "\u{0}".repeat(3),
        "a".repeat(1000),
        "\"".repeat(1000),
        "x ".repeat(500),
        "-".repeat(1000),
        "東".repeat(1000),
    ] {
        let answer = inbox.try_get(&format!("search?query={}", encoded(&odd))).await;
        assert!(matches!(answer.status, 200 | 400), "{odd:?}: {}", answer.text());
    }
    assert_refuses_fields(&inbox.try_get(&format!("search?query={}", "a".repeat(1001))).await, &["query"]);
}

// rules: SEARCH-8
#[both_engines]
async fn a_mistake_in_a_query_is_told_with_its_place(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    for (query, column, token, fault) in [
        (
            "after:garbage x",
            7,
            "garbage",
            "expected a date such as 2026-07-14, or a time such as 2026-07-14T10:00:00Z",
        ),
        ("has:foo", 5, "foo", "expected has:attachment"),
        ("is:urgent", 4, "urgent", "expected is:read, is:unread or is:starred"),
        ("lunch from:", 12, "from:", "expected a value after \"from:\""),
        (
            "foo:bar",
            1,
            "foo:bar",
            "unknown field \"foo\"; the fields are from, to, subject, label, has, is, before, after; words with a colon stand in quotation marks",
        ),
        ("\"unclosed", 1, "\"unclosed", "this quotation mark is not closed"),
        ("-label:vip", 8, "vip", "a label can be asked for, but not left out"),
    ] {
        let answer = inbox.try_get(&format!("search?query={}", encoded(query))).await;
        let detail = format!("column {column}, at “{token}”: {fault}");
        let body = json!({
            "error": format!("Invalid search query at character {column} (“{token}”)"),
            "code": "validation_failed", "details": [{ "path": "query", "message": detail }],
        });
        assert_eq!((answer.status, answer.json()), (400, body), "{query}");
    }
    for fine in ["12:30", "https://a.test/x", "\"Re: lunch\""] {
        assert_eq!(inbox.search(fine).await, Vec::<String>::new());
    }
}

// rules: SEARCH-2
#[both_engines]
async fn parameters_filter_like_fields_and_combine(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    new_label(&inbox, "Bills", "subject:invoice").await;
    fill(&server, &inbox).await;
    let list = inbox.get("search?limit=100").await;
    let id = |subject: &str| {
        let all = list["emails"].as_array().unwrap();
        all.iter().find(|one| one["subject"] == subject).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let lunch = id("Re: lunch");
    inbox
        .put(&format!("emails/{lunch}"), json!({ "read": true, "starred": true, "category": "technical" }))
        .await
        .ok();
    inbox.post(&format!("emails/{}/move", id("Reporting")), json!({ "folderId": "spam" })).await.ok();
    for (query, expected) in [
        ("from=bob", vec![]),
        ("from=bob&folder=spam", vec!["Reporting"]),
        ("folder=spam", vec!["Reporting"]),
        ("subject=repo", vec!["Report draft"]),
        ("to=me&query=draft", vec!["Report draft", "Re: lunch"]),
        ("query=draft&is_read=true", vec!["Re: lunch"]),
        ("query=draft&is_read=false", vec!["Report draft"]),
        ("is_starred=1&query=is:starred%20is:read", vec!["Re: lunch"]),
        ("category=technical", vec!["Re: lunch"]),
        ("custom_label=bills", vec!["Invoice 2026-07"]),
        ("custom_label=bills&query=label:none", vec![]),
        ("has_attachment=true", vec!["Report draft"]),
        ("has_attachment=true&query=-has:attachment", vec![]),
        ("date_start=2026-07-04T00:00:00Z&date_end=2026-07-06T00:00:00Z", vec!["Report draft", "東京の会議"]),
        ("date_start=2026-07-04T00:00:00Z&query=before:2026-07-05", vec!["東京の会議"]),
        ("query=past&date_end=2026-07-02T00:00:00Z", vec!["Invoice 2026-07"]),
        ("from=%21", vec![]),
    ] {
        let found = inbox.get(&format!("search?{query}")).await;
        assert_eq!(texts(&found["emails"], "subject"), expected, "{query}");
        assert_eq!(found["totalCount"], expected.len(), "{query}");
    }
    inbox.try_get("search?folder=nowhere").await.expect(400, "folder_unknown");
    for (query, field) in [
        ("mode=fuzzy", "mode"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("q=x", "q"),
        ("date_start=x", "date_start"),
    ] {
        assert_refuses_fields(&inbox.try_get(&format!("search?{query}")).await, &[field]);
    }
}

// rules: SEARCH-3
#[both_engines]
async fn an_answer_has_scores_highlights_and_pages(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let mut expected = Vec::new();
    for number in 0..23 {
        let words = if number % 2 == 0 { "the needle is here" } else { "only hay" };
        server.receive(&inbox.address, plain(&format!("Mail {number}"), words)).await;
        if number % 2 == 0 {
            expected.insert(0, format!("Mail {number}"));
        }
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = inbox.get(&format!("search?query=needle&limit=5{cursor}")).await;
        assert_eq!(page["totalCount"], 12);
        for email in page["emails"].as_array().unwrap() {
            let score = email["score"].as_f64().unwrap();
            assert!(score > 0.0 && score <= 1.0, "{score}");
            assert_eq!(email["highlights"], json!(["the **needle** is here"]));
            assert!(email["id"].is_string() && email.get("raw_headers").is_none());
        }
        found.extend(texts(&page["emails"], "subject"));
        assert_eq!(page["has_more"] == true, page["next_cursor"].is_string());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={}", encoded(next)),
            None => break,
        }
    }
    assert_eq!(found, expected);
    // A list without words comes in pages too.
    let first = inbox.get("search?limit=20").await;
    assert!(first["emails"].as_array().unwrap().iter().all(|email| email["score"] == 0.0));
    let next = encoded(first["next_cursor"].as_str().unwrap());
    let rest = inbox.get(&format!("search?limit=20&cursor={next}")).await;
    assert_eq!((&first["totalCount"], rest["emails"].as_array().unwrap().len()), (&json!(23), 3));
    let better = server.receive(&inbox.address, plain("Needle", "needle needle")).await;
    let page = inbox.get("search?query=needle&limit=2").await;
    assert_eq!(page["emails"][0]["id"], json!(better));
    assert!(page["emails"][0]["score"].as_f64() > page["emails"][1]["score"].as_f64());
}

// rules: SEARCH-5, SEARCH-6, READ-24
#[both_engines]
async fn search_stays_in_its_mailbox_and_forgets_what_is_deleted(engine: Engine) {
    let server = Server::start(engine).await;
    let (inbox, foreign) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let other = inbox.another().await;
    let mut ids = Vec::new();
    for one in [&inbox, &other, &foreign] {
        ids.push(server.receive(&one.address, plain("Same", "needle")).await);
        assert_eq!(one.search("needle").await, ["Same"]);
    }
    // A mailbox is a word of the index, but not one that a query can say.
    let word: String = other.id.as_str().chars().filter(char::is_ascii_alphanumeric).collect();
    for query in [word.clone(), format!("\"scope:{word}\""), format!("needle OR {word}")] {
        assert_eq!(inbox.search(&query).await, Vec::<String>::new(), "{query}");
    }
    inbox.hold(&server, &ids[0], 60).await;
    assert_eq!(inbox.search("needle").await, Vec::<String>::new());
    assert_eq!(inbox.get("search?query=needle").await["totalCount"], 0);
    assert_eq!(inbox.get("search?query=needle&include_held=true").await["totalCount"], 1);
    server.clock.advance(60);
    assert_eq!(inbox.search("needle").await, ["Same"]);
    inbox.delete(&format!("emails/{}", ids[0])).await.ok();
    assert_eq!(inbox.search("needle").await, Vec::<String>::new());
    assert_eq!(texts(&inbox.get("search?query=needle&folder=trash").await["emails"], "subject"), ["Same"]);
    inbox.delete(&format!("emails/{}", ids[0])).await.ok();
    assert_eq!(inbox.get("search?query=needle&folder=trash").await["emails"], json!([]));
    assert_eq!(other.search("needle").await, ["Same"]);
    let again = server.receive(&inbox.address, plain("Again", "needle")).await;
    assert_eq!(inbox.get("search?query=needle").await["emails"][0]["id"], json!(again));
    // A deleted mailbox leaves nothing in the index.
    inbox.key.delete(&other.path).await.ok();
    server.clock.advance(8 * 86_400);
    operations::maintenance::run(&server.app).await.unwrap();
    server.app.db().index_texts().await.unwrap();
    let left = server
        .app
        .db()
        .system_read(async |tx| tx.one::<(i64,)>("SELECT count(*) FROM email_text", &[]).await);
    assert_eq!(left.await.unwrap(), Some((2,)));
}

/// More words than an index takes do not keep a mail from arriving.
// rules: SEARCH-6
#[both_engines]
async fn a_mail_of_many_long_words_arrives_and_is_found(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let words: Vec<String> = (0..25_000).map(|number| format!("{number:0>70}")).collect();
    let long = format!("first\r\n{}\r\n", words.join("\r\n"));
    let id = server.receive(&inbox.address, plain("Words", &long)).await;
    assert_eq!(inbox.search("first words").await, ["Words"]);
    let same = "same ".repeat(30_000);
    server.receive(&inbox.address, plain("Repeated", &same)).await;
    assert_eq!(inbox.search("same").await, ["Repeated"]);
    assert_eq!(inbox.get(&format!("emails/{id}")).await["scan_status"], Value::from("clean"));
}

// rules: SEARCH-4
#[both_engines]
async fn modes_without_an_index_are_not_available(engine: Engine) {
    let mut options = ServerOptions::default();
    options.memory.mail = false;
    let server = Server::with(engine, options).await;
    let inbox = Inbox::new(&server).await;
    server.receive(&inbox.address, plain("One", "needle")).await;
    let plain_answer = inbox.get("search?query=needle").await;
    assert_eq!(inbox.get("search?query=needle&mode=text").await, plain_answer);
    let credits = format!("/api/v1/workspaces/{}/usage/credits", inbox.workspace);
    let used = async || inbox.key.get(&credits).await.ok()["used"].as_i64().unwrap();
    let before = used().await;
    for mode in ["semantic", "hybrid"] {
        let refused = inbox.try_get(&format!("search?query=needle&mode={mode}")).await;
        refused.expect(503, "memory_unavailable");
        assert!(refused.json()["fix"].as_str().unwrap().contains("mode=text"));
    }
    assert_eq!(used().await, before + 1, "only the question about the credits");
}

// rules: SEARCH-7
#[both_engines]
async fn the_work_of_a_query_is_bounded(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let mut file = String::new();
    for number in 0..1005 {
        let mail = plain(&format!("Mail {number}"), "needle");
        file += "From ann@remote.test Wed Jul  1 10:00:00 2026\n";
        file += &mail.replace('\r', "");
        file.push('\n');
    }
    inbox.import("application/mbox", file).await.ok();
    assert_eq!(inbox.get("emails?limit=1").await["totalCount"], 1005);
    let found = inbox.get("search?query=needle").await;
    assert_eq!((found["emails"].as_array().unwrap().len(), &found["totalCount"]), (25, &json!(1000)));
    let most = inbox.get("search?query=needle&limit=100").await;
    assert_eq!(most["emails"].as_array().unwrap().len(), 100);
    // What is asked beyond 32 clauses is not looked at.
    let many = "needle ".repeat(32);
    for (query, count) in [(format!("{many}nowhere"), 1000), (format!("nowhere {many}"), 0)] {
        let found = inbox.get(&format!("search?limit=1&query={}", encoded(&query))).await;
        assert_eq!(found["totalCount"], count, "{query}");
    }
}
