//! `kill -9` while documents are read and mail is taken into memory: what was acknowledged is known in the end, once.

use std::time::{Duration, Instant};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    Home, Server,
    mail::{Inbox, Smtp, message},
    text,
};

/// Waits until something holds.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        // Threads of low priority do it: beside other work that takes as long as it takes.
        assert!(started.elapsed() < Duration::from_mins(8), "{what} does not come");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn document(server: &Server, key: &str, id: &str) -> Value {
    server.call(key, "GET", &format!("/api/v1/rag/documents/{id}"), &Value::Null).json()
}

fn recalled(server: &Server, key: &str, query: &str) -> Vec<Value> {
    let answer = server.call(key, "POST", "/api/v1/rag/recall", &json!({ "query": query, "limit": 10 }));
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()["snippets"].as_array().unwrap().clone()
}

/// rules: MEMORY-5, MEMORY-9
#[test]
fn kill_9_during_indexing_loses_nothing_and_indexes_nothing_twice() {
    for home in Home::on_each_engine() {
        let mut server = home.serve();
        let workspace = home.create_account("ada@example.com", "enterprise");
        let (_, key) = home.create_key(&workspace, &[]);
        let lines: Vec<String> = (0..200)
            .map(|number| {
                format!(
                    "Chapter {number} tells of the voyage, of storms, of maps and of port number {number}."
                )
            })
            .collect();
        let body =
            json!({ "name": "book.txt", "type": "text", "content": STANDARD.encode(lines.join("\n\n")) });
        let added = server.call(&key, "POST", "/api/v1/rag/documents", &body);
        assert_eq!(added.status, 201, "{}", added.body);
        let id = text(&added.json(), "id");
        // Killed again and again, each time after some progress.
        let mut done = 0;
        for _ in 0..3 {
            let state = eventually("progress", || {
                let state = document(&server, &key, &id);
                let is_further = state["chunks_done"].as_i64().unwrap() > done || state["status"] == "ready";
                is_further.then_some(state)
            });
            assert!(state["chunks_done"].as_i64().unwrap() >= done, "no step is lost");
            done = state["chunks_done"].as_i64().unwrap();
            server.signal("KILL");
            server.wait(Duration::from_secs(10));
            server = home.serve();
        }
        // On PostgreSQL another node may hold the document for two minutes; there is none, but nobody knows.
        let ready = eventually("the end", || {
            let state = document(&server, &key, &id);
            (state["status"] == "ready").then_some(state)
        });
        assert_eq!(ready["chunks_done"], ready["chunk_count"]);
        let check = server.call(&key, "POST", &format!("/api/v1/rag/documents/{id}/verify"), &Value::Null);
        assert_eq!(check.json()["ok"], true, "{}", check.body);
        let credentials = server.call(&key, "GET", "/api/v1/rag/credentials", &Value::Null).json();
        assert_eq!(credentials["passages"], ready["chunk_count"], "none twice");
        let found = recalled(&server, &key, "Which chapter tells of port number 199?");
        assert!(found.iter().any(|one| text(one, "text").contains("port number 199")), "{found:?}");
        server.stop();
    }
}

/// rules: MEMORY-9, MEMORY-11
#[test]
fn mail_comes_into_memory_by_itself_and_after_a_crash() {
    for home in Home::on_each_engine() {
        let mut server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        let key = inbox.key.clone();
        let mut client = Smtp::try_connect(server.smtp, "EHLO").unwrap();
        for number in 0..40 {
            let raw =
                message(&format!("Report {number}"), &format!("The harvest of field {number} was good."));
            assert_eq!(client.send(&inbox.address, &raw).unwrap().0, 250);
        }
        server.signal("KILL");
        server.wait(Duration::from_secs(10));
        server = home.serve();
        let passages =
            || server.call(&key, "GET", "/api/v1/rag/credentials", &Value::Null).json()["passages"].clone();
        eventually("all mail in memory", || (passages() == 40).then_some(()));
        let found = recalled(&server, &key, "How was the crop of field 17?");
        assert_eq!(found[0]["source"], "email");
        assert!(found.iter().any(|one| text(one, "text").contains("field 17 ")), "{found:?}");
        server.stop();
    }
}
