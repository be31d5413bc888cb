//! Lists of emails: filters, order, pages, cursors.

use model::EmailId;
use serde_json::{Value, json};
use testkit::{Engine, Server, both_engines};

use super::{
    help::{assert_refuses_fields, encoded},
    mails::{Inbox, dated, message, new_label, plain, texts, with_file},
};

/// The subjects of a list.
async fn subjects(inbox: &Inbox, query: &str) -> Vec<String> {
    let list = inbox.get(&format!("emails?{query}")).await;
    let found = texts(&list["emails"], "subject");
    assert_eq!(list["totalCount"], found.len(), "{query}");
    assert_eq!((&list["has_more"], &list["next_cursor"]), (&json!(false), &Value::Null), "{query}");
    found
}

// rules: READ-2, READ-4, RECV-16
#[both_engines]
async fn a_list_filters(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    new_label(&inbox, "Bills", "subject:invoice").await;
    let mut ids: Vec<EmailId> = Vec::new();
    for (number, raw) in [
        dated("Invoice 1", "one", 10),
        dated("Note", "two", 12),
        with_file("Report", "a.csv", "text/csv", b"1;2")
            .replace("Subject:", "Date: 11 Jul 2026 10:00 +0000\r\nSubject:"),
        dated("Thrown away", "four", 9),
        dated("Junk", "five", 8),
        // A date that is later than the arrival is not believed.
        dated("Future", "six", 30),
    ]
    .into_iter()
    .enumerate()
    {
        server.clock.advance(i64::try_from(number).unwrap());
        ids.push(server.receive(&inbox.address, raw).await);
    }
    inbox.delete(&format!("emails/{}", ids[3])).await.ok();
    inbox.post(&format!("emails/{}/move", ids[4]), json!({ "folderId": "spam" })).await.ok();
    inbox.put(&format!("emails/{}", ids[0]), json!({ "read": true, "category": "technical" })).await.ok();
    inbox.put(&format!("emails/{}", ids[1]), json!({ "starred": true })).await.ok();
    inbox.post("folders", json!({ "name": "Mine" })).await.ok();
    inbox.post(&format!("emails/{}/move", ids[1]), json!({ "folderId": "mine" })).await.ok();
    for (query, expected) in [
        ("", vec!["Future", "Note", "Report", "Invoice 1"]),
        ("folder=inbox", vec!["Future", "Report", "Invoice 1"]),
        ("folder=mine", vec!["Note"]),
        ("folder=trash", vec!["Thrown away"]),
        ("folder=spam", vec!["Junk"]),
        ("folder=archive", vec![]),
        ("is_read=true", vec!["Invoice 1"]),
        ("is_read=false", vec!["Future", "Note", "Report"]),
        ("is_read=false&folder=inbox", vec!["Future", "Report"]),
        ("is_starred=1", vec!["Note"]),
        ("is_starred=0", vec!["Future", "Report", "Invoice 1"]),
        ("has_attachment=true", vec!["Report"]),
        ("has_attachment=false", vec!["Future", "Note", "Invoice 1"]),
        ("category=technical", vec!["Invoice 1"]),
        ("category=partnership", vec![]),
        ("custom_label=bills", vec!["Invoice 1"]),
        ("custom_label=nothing", vec![]),
        ("custom_label=bills&is_read=false", vec![]),
        ("is_starred=true&has_attachment=false&folder=mine", vec!["Note"]),
    ] {
        assert_eq!(subjects(&inbox, query).await, expected, "{query}");
    }
    for (number, id) in ids.iter().enumerate() {
        let thread = inbox.get(&format!("emails/{id}")).await["thread_id"].as_str().unwrap().to_owned();
        let shown = subjects(&inbox, &format!("thread_id={thread}")).await.len();
        assert_eq!(shown, usize::from(!matches!(number, 3 | 4)), "{number}");
    }
    assert_eq!(subjects(&inbox, "thread_id=thr_none").await, Vec::<String>::new());
    inbox.try_get("emails?folder=nowhere").await.expect(400, "folder_unknown");
}

// rules: READ-2
#[both_engines]
async fn bounds_and_unknown_parameters_are_refused(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    for number in 0..27 {
        server.receive(&inbox.address, plain(&format!("Mail {number}"), "text")).await;
    }
    let list = inbox.get("emails").await;
    assert_eq!((list["emails"].as_array().unwrap().len(), &list["totalCount"]), (25, &json!(27)));
    assert_eq!(list["has_more"], true);
    let full = inbox.get("emails?limit=100").await;
    assert_eq!((full["emails"].as_array().unwrap().len(), &full["has_more"]), (27, &json!(false)));
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("page=0", "page"),
        ("page=-1", "page"),
        ("sortColumn=body", "sortColumn"),
        ("sortDirection=desc", "sortDirection"),
        ("category=news", "category"),
        ("require_scan_status=none", "require_scan_status"),
        ("sort=date", "sort"),
        ("Folder=inbox", "Folder"),
        ("threaded=true&sortDirection=ASC", "threaded"),
    ] {
        assert_refuses_fields(&inbox.try_get(&format!("emails?{query}")).await, &[field]);
    }
    let cursor = list["next_cursor"].as_str().unwrap();
    assert_refuses_fields(&inbox.try_get(&format!("emails?page=2&cursor={cursor}")).await, &["page"]);
    assert_eq!(inbox.get("emails?page=3").await["emails"], json!([]));
    assert_eq!(inbox.get("emails?page=1000000&limit=100").await["totalCount"], 27);
}

/// Mails whose columns hold many equal values.
async fn fill(server: &Server, inbox: &Inbox, from: usize, to: usize) {
    for number in from..to {
        let headers = format!(
            "From: Person {} <p{}@remote.test>\nDate: {} Jul 2026 10:00:00 +0000",
            number % 3,
            number % 3,
            1 + number % 4
        );
        let raw = message(&format!("Ünder {}", number % 5), &headers, &format!("{number}\r\n"))
            .replace("Message-ID: <", &format!("Message-ID: <{number}."));
        let tagged = inbox.address.replace('@', &format!("+{}@", number % 2));
        let id = server.receive(&tagged, raw).await;
        let marks = json!({ "read": number % 2 == 0, "starred": number % 3 == 0 });
        inbox.put(&format!("emails/{id}"), marks).await.ok();
    }
}

/// All pages of a list, with something done after each.
async fn pages(inbox: &Inbox, query: &str, mut between: impl AsyncFnMut(usize)) -> Vec<Value> {
    let (mut all, mut cursor, mut number) = (Vec::new(), String::new(), 0);
    loop {
        let page = inbox.get(&format!("emails?limit=7&{query}{cursor}")).await;
        all.extend(page["emails"].as_array().unwrap().iter().cloned());
        assert_eq!(page["has_more"] == true, !page["next_cursor"].is_null());
        let Some(next) = page["next_cursor"].as_str() else { return all };
        cursor = format!("&cursor={}", encoded(next));
        number += 1;
        between(number).await;
    }
}

const COLUMNS: [&str; 7] = ["date", "subject", "sender", "recipient", "read", "starred", "id"];

// rules: READ-6
#[both_engines]
async fn every_order_is_whole_by_cursor_and_by_page(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    fill(&server, &inbox, 0, 30).await;
    for column in COLUMNS {
        let mut directions = Vec::new();
        for direction in ["ASC", "DESC"] {
            let query = format!("sortColumn={column}&sortDirection={direction}");
            let all = pages(&inbox, &query, async |_| {}).await;
            let ids = texts(&Value::Array(all.clone()), "id");
            let mut unique = ids.clone();
            unique.sort();
            unique.dedup();
            assert_eq!((ids.len(), unique.len()), (30, 30), "{query}");
            let shown = |email: &Value| match &email[column] {
                Value::Bool(mark) => mark.to_string(),
                text => text.as_str().unwrap().to_lowercase(),
            };
            let in_order = all.windows(2).all(|two| match direction {
                "ASC" => shown(&two[0]) <= shown(&two[1]),
                _ => shown(&two[0]) >= shown(&two[1]),
            });
            assert!(in_order, "{query}");
            let mut by_page = Vec::new();
            for page in 1..=5 {
                let page = inbox.get(&format!("emails?limit=7&page={page}&{query}")).await;
                by_page.extend(texts(&page["emails"], "id"));
            }
            assert_eq!(by_page, ids, "{query}");
            directions.push(ids);
        }
        directions[1].reverse();
        assert_eq!(directions[0], directions[1], "{column}");
    }
}

/// What was there at the first page comes exactly once, whatever arrives meanwhile.
// rules: READ-6
#[both_engines]
async fn pages_lose_and_repeat_nothing_while_mail_arrives(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    fill(&server, &inbox, 0, 20).await;
    let mut made = 20;
    for column in COLUMNS {
        for direction in ["ASC", "DESC"] {
            let before = texts(&inbox.get("emails?limit=100").await["emails"], "id");
            let query = format!("sortColumn={column}&sortDirection={direction}");
            let all = pages(&inbox, &query, async |page| {
                if page == 1 {
                    fill(&server, &inbox, made, made + 2).await;
                    made += 2;
                }
            })
            .await;
            let found = texts(&Value::Array(all), "id");
            for id in &before {
                assert_eq!(found.iter().filter(|one| *one == id).count(), 1, "{query}");
            }
        }
    }
}

/// The subjects of a whole list, page by page.
async fn by_cursor(inbox: &Inbox, list: &str) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = inbox.get(&format!("{list}{cursor}")).await;
        found.extend(texts(&page["emails"], "subject"));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={}", encoded(next)),
            None => return found,
        }
    }
}

// rules: READ-5
#[both_engines]
async fn a_threaded_list_shows_the_newest_of_each_thread(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    for number in 0..5 {
        let first = dated(&format!("Topic {number}"), "first", 1 + number);
        server.receive(&inbox.address, first).await;
    }
    let reply =
        message("Re: Topic 1", "In-Reply-To: <Topic1@remote.test>\nDate: 12 Jul 2026 10:00 +0000", "again");
    let reply = server.receive(&inbox.address, reply).await;
    let expected = ["Re: Topic 1", "Topic 4", "Topic 3", "Topic 2", "Topic 0"];
    let list = inbox.get("emails?threaded=true").await;
    assert_eq!(
        (texts(&list["emails"], "subject"), &list["totalCount"]),
        (expected.map(str::to_owned).to_vec(), &json!(5))
    );
    let counts: Vec<i64> =
        list["emails"].as_array().unwrap().iter().map(|one| one["thread_count"].as_i64().unwrap()).collect();
    assert_eq!(counts, [2, 1, 1, 1, 1]);
    assert!(inbox.get("emails").await["emails"][0].get("thread_count").is_none());
    assert_eq!(by_cursor(&inbox, "emails?threaded=1&limit=2").await, expected);
    let second = inbox.get("emails?threaded=1&limit=2&page=2").await;
    assert_eq!(texts(&second["emails"], "subject"), expected[2..4]);
    // In Trash a thread is what of it lies there.
    inbox.delete(&format!("emails/{reply}")).await.ok();
    let list = inbox.get("emails?threaded=true").await;
    assert_eq!(texts(&list["emails"], "subject"), ["Topic 4", "Topic 3", "Topic 2", "Topic 1", "Topic 0"]);
    let trash = inbox.get("emails?threaded=true&folder=trash").await;
    assert_eq!((&trash["emails"][0]["id"], &trash["emails"][0]["thread_count"]), (&json!(reply), &json!(1)));
}

// rules: READ-5
#[both_engines]
async fn a_threaded_list_takes_the_other_filters(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    new_label(&inbox, "Odd", "subject:\"Topic 1\" or subject:\"Topic 3\"").await;
    let mut ids = Vec::new();
    for number in 0..5 {
        let first = dated(&format!("Topic {number}"), "first", 1 + number);
        ids.push(server.receive(&inbox.address, first).await);
    }
    for number in 0..5 {
        let headers =
            format!("In-Reply-To: <Topic{number}@remote.test>\nDate: {} Jul 2026 10:00 +0000", 12 - number);
        let reply = message(&format!("Re: Topic {number}"), &headers, "again");
        ids.push(server.receive(&inbox.address, reply).await);
    }
    let mark = async |number: usize, change: Value| {
        inbox.put(&format!("emails/{}", ids[number]), change).await.ok();
    };
    // Both mails of topic 0 are read, of topic 1 the newer one.
    for number in [0, 5, 6] {
        mark(number, json!({ "read": true })).await;
    }
    mark(2, json!({ "starred": true, "category": "technical" })).await;
    let thread = inbox.get(&format!("emails/{}", ids[4])).await["thread_id"].as_str().unwrap().to_owned();
    for (query, expected) in [
        ("is_read=false", vec!["Re: Topic 2", "Re: Topic 3", "Re: Topic 4", "Topic 1"]),
        ("is_read=true", vec!["Re: Topic 0", "Re: Topic 1"]),
        ("is_read=false&folder=inbox", vec!["Re: Topic 2", "Re: Topic 3", "Re: Topic 4", "Topic 1"]),
        ("is_read=false&folder=trash", vec![]),
        ("is_starred=true", vec!["Topic 2"]),
        ("category=technical&is_read=0", vec!["Topic 2"]),
        ("has_attachment=true", vec![]),
        ("custom_label=odd", vec!["Re: Topic 1", "Re: Topic 3"]),
        ("custom_label=odd&is_read=false", vec!["Re: Topic 3", "Topic 1"]),
        (&format!("thread_id={thread}"), vec!["Re: Topic 4"]),
    ] {
        let list = inbox.get(&format!("emails?threaded=true&{query}")).await;
        assert_eq!(
            (texts(&list["emails"], "subject"), &list["totalCount"]),
            (expected.iter().map(|one| (*one).to_owned()).collect(), &json!(expected.len())),
            "{query}"
        );
        let counts = list["emails"].as_array().unwrap().iter().all(|one| one["thread_count"] == 2);
        assert!(counts, "all mails of a thread count: {list}");
        let paged = by_cursor(&inbox, &format!("emails?threaded=1&limit=1&{query}")).await;
        assert_eq!(paged, expected, "{query} by cursor");
    }
    let second = inbox.get("emails?threaded=1&is_read=false&limit=2&page=2").await;
    assert_eq!(texts(&second["emails"], "subject"), ["Re: Topic 4", "Topic 1"]);
    // What is held is neither the newest nor counted.
    inbox.hold(&server, &ids[7], 60).await;
    let list = inbox.get("emails?threaded=1&is_read=false").await;
    assert_eq!(
        (texts(&list["emails"], "subject"), &list["totalCount"]),
        (["Re: Topic 3", "Re: Topic 4", "Topic 2", "Topic 1"].map(str::to_owned).to_vec(), &json!(4))
    );
    assert_eq!(list["emails"][2]["thread_count"], 1);
}

// rules: READ-7, SAFE-2
#[both_engines]
async fn a_cursor_works_for_its_own_query_alone(engine: Engine) {
    let server = Server::start(engine).await;
    let (inbox, foreign) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let neighbour = inbox.another().await;
    let mut ids = Vec::new();
    for number in 0..3 {
        for one in [&inbox, &foreign, &neighbour] {
            let raw = message(&format!("Topic {number}"), "References: <0@remote.test>", "word\r\n");
            ids.push(server.receive(&one.address, raw).await);
        }
        for one in [&inbox, &foreign, &neighbour] {
            server.receive(&one.address, plain(&format!("Other {number}"), "word")).await;
        }
    }
    let invalid = |answer: &testkit::Answer| {
        answer.expect(400, "invalid_cursor");
        assert_eq!(answer.json()["error"], "Invalid cursor");
    };
    let context = |number: usize| format!("emails/{}/context", ids[number]);
    for (path, other) in [
        ("emails".to_owned(), "emails?is_read=false".to_owned()),
        ("emails?threaded=true".to_owned(), "emails".to_owned()),
        ("emails?sortColumn=subject".to_owned(), "emails?sortColumn=sender".to_owned()),
        ("search?query=word".to_owned(), "search?query=words".to_owned()),
        ("threads".to_owned(), "threads?folder=inbox".to_owned()),
        (context(0), context(3)),
    ] {
        let join =
            |path: &str, rest: &str| format!("{path}{}{rest}", if path.contains('?') { '&' } else { '?' });
        let page = inbox.get(&join(&path, "limit=1")).await;
        let next =
            if path.contains("context") { &page["thread"]["next_cursor"] } else { &page["next_cursor"] };
        let cursor = next.as_str().unwrap();
        assert!(cursor.len() <= 2048);
        let with = |path: &str, cursor: &str| join(path, &format!("limit=1&cursor={}", encoded(cursor)));
        inbox.get(&with(&path, cursor)).await;
        for at in [0, cursor.len() / 2, cursor.len() - 1] {
            let mut changed = cursor.as_bytes().to_vec();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            invalid(&inbox.try_get(&with(&path, std::str::from_utf8(&changed).unwrap())).await);
        }
        invalid(&inbox.try_get(&with(&path, &cursor[1..])).await);
        invalid(&inbox.try_get(&with(&path, &"A".repeat(2049))).await);
        invalid(&inbox.try_get(&with(&path, "not a cursor")).await);
        invalid(&inbox.try_get(&with(&other, cursor)).await);
        if !path.contains("context") {
            invalid(&neighbour.try_get(&with(&path, cursor)).await);
            invalid(&foreign.try_get(&with(&path, cursor)).await);
        }
    }
}
