//! The ways to read an email: in full, metadata only, behind the scan gate, safe for agents, cut to a length.

use serde_json::{Value, json};
use testkit::{Engine, Server, both_engines};

use super::{
    help::assert_refuses_fields,
    mails::{Inbox, flagged, html, message, plain, skipped},
};

/// What a mode leaves of an email.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that is seen or not")]
struct Seen {
    body: bool,
    snippet: bool,
    raw_headers: bool,
    threat_urls: bool,
    details: bool,
    omitted: bool,
    reason: bool,
    safe: bool,
}

fn seen(email: &Value) -> Seen {
    let has = |field: &str| email.get(field).is_some();
    let details =
        ["provider_metadata", "scan_threats", "attachments", "body_storage_status", "body_storage_message"];
    let shown = details.iter().filter(|field| has(field)).count();
    assert!(shown == 0 || shown == details.len(), "{email}");
    let threats = email["scan_threats"].as_array().cloned().unwrap_or_default();
    assert!(has("attachment_count") && has("scan_status") && has("sender_authentication"));
    Seen {
        body: has("body"),
        snippet: has("snippet"),
        raw_headers: has("raw_headers"),
        threat_urls: threats.iter().any(|threat| threat.get("url").is_some()),
        details: shown > 0,
        omitted: email["content_omitted"] == true,
        reason: email["content_omission_reason"] == "scan_status_not_clean",
        safe: email["agent_safe_content"] == true,
    }
}

const FULL: Seen = Seen {
    body: true,
    snippet: true,
    raw_headers: true,
    threat_urls: false,
    details: true,
    omitted: false,
    reason: false,
    safe: false,
};
const METADATA: Seen = Seen { body: false, snippet: false, raw_headers: false, omitted: true, ..FULL };
const GATED: Seen = Seen { reason: true, ..METADATA };
const SAFE: Seen = Seen { raw_headers: false, details: false, safe: true, ..FULL };
const SAFE_GATED: Seen = Seen { details: false, safe: true, ..GATED };

// rules: READ-8, READ-9, READ-26, SAFE-4, SCAN-1, SCAN-8, SCAN-10
#[both_engines]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn every_mode_shows_what_it_says(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let clean = server.receive(&inbox.address, plain("Clean", "All is well.")).await;
    let bad = "<p>Go</p><a href=\"https://user:secret@evil.test/x\">here</a>";
    let link = server.receive(&inbox.address, html("Link", bad)).await;
    let virus = server.receive(&inbox.address, flagged("Virus")).await;
    let odd = server.receive(&inbox.address, skipped("Odd")).await;
    let fresh = server.receive(&inbox.address, plain("Fresh", "Not looked at.")).await;
    inbox.set_scan(&server, &fresh, None).await;
    let with_urls = |seen: Seen| Seen { threat_urls: seen.details && !seen.omitted, ..seen };
    for (id, status) in [
        (&clean, json!("clean")),
        (&link, json!("flagged")),
        (&virus, json!("flagged")),
        (&odd, json!("skipped")),
        (&fresh, Value::Null),
    ] {
        let threats = status == "flagged";
        let expected = |seen: Seen| if threats { with_urls(seen) } else { seen };
        let gate = |wanted: &str| if status == wanted { FULL } else { GATED };
        let safe_gate = |wanted: &str| if status == wanted { SAFE } else { SAFE_GATED };
        for (query, mode) in [
            ("", FULL),
            ("?metadata_only=true", METADATA),
            ("?require_scan_status=clean", gate("clean")),
            ("?require_scan_status=flagged", gate("flagged")),
            ("?require_scan_status=skipped", gate("skipped")),
            ("?agent_safe_content=1", safe_gate("clean")),
            // What is safe is clean, whatever else is asked for.
            ("?agent_safe_content=1&require_scan_status=clean", safe_gate("clean")),
            ("?agent_safe_content=1&require_scan_status=flagged", SAFE_GATED),
            ("?agent_safe_content=1&require_scan_status=skipped", SAFE_GATED),
            ("?agent_safe_content=0&metadata_only=0", FULL),
        ] {
            let email = inbox.get(&format!("emails/{id}{query}")).await;
            assert_eq!(seen(&email), expected(mode), "{query} {email}");
            assert_eq!(email["scan_status"], status);
            // The list, a thread and a search leave out the same, and never show header blocks in lists.
            let list_query = query.replace('?', "&");
            let listed = Seen { raw_headers: false, ..expected(mode) };
            let list = inbox.get(&format!("emails?limit=100{list_query}")).await;
            let of = |list: &Value| {
                list.as_array().unwrap().iter().find(|one| one["id"] == json!(id)).unwrap().clone()
            };
            assert_eq!(seen(&of(&list["emails"])), listed, "{query}");
            let found = inbox.get(&format!("search?limit=100&to=me{list_query}")).await;
            let found = of(&found["emails"]);
            assert_eq!(seen(&found), listed, "search {query}");
            assert_eq!(found.get("highlights").is_some(), !listed.omitted, "search {query}");
            let thread = email["thread_id"].as_str().unwrap();
            let thread = inbox.get(&format!("threads/{thread}{query}")).await;
            assert_eq!(seen(&of(&thread)), expected(mode), "thread {query}");
        }
        // The context shows clean mail alone.
        let context = inbox.get(&format!("emails/{id}/context")).await;
        for shown in [&context["email"], &context["thread"]["messages"][0]] {
            assert_eq!(seen(shown), if status == "clean" { SAFE } else { SAFE_GATED });
        }
        let raw = inbox.try_get(&format!("emails/{id}/raw")).await;
        assert_eq!(raw.status, if threats { 403 } else { 200 });
    }
    let threats = &inbox.get(&format!("emails/{link}")).await["scan_threats"];
    assert_eq!(threats[0]["url"], "https://user:secret@evil.test/x", "{threats}");
    assert_eq!((&threats[0]["source"], &threats[0]["attachment_filename"]), (&json!("body"), &json!("")));
    let virus = inbox.get(&format!("emails/{virus}")).await;
    let in_file = json!({ "url": "", "threat_type": "test_virus", "source": "attachment",
                              "attachment_filename": "invoice.txt" });
    assert!(virus["scan_threats"].as_array().unwrap().contains(&in_file), "{virus}");
}

// rules: READ-10, SAFE-10
#[both_engines]
async fn a_body_is_cut_on_a_character_boundary_and_says_so(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let headers =
        "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit";
    let id = server.receive(&inbox.address, message("Long", headers, &"ä€😀z".repeat(50))).await;
    let whole = inbox.get(&format!("emails/{id}")).await;
    assert_eq!(whole["body"].as_str().unwrap().chars().count(), 200);
    assert_eq!((&whole["content_truncated"], whole.get("body_original_char_count")), (&json!(false), None));
    for path in [format!("emails/{id}"), "emails".to_owned(), "search".to_owned()] {
        for (most, text) in [(1, "ä"), (2, "ä€"), (3, "ä€😀"), (5, "ä€😀zä")] {
            for safe in ["", "&agent_safe_content=true"] {
                let answer = inbox.get(&format!("{path}?max_body_chars={most}{safe}")).await;
                let email = if path.contains('/') { &answer } else { &answer["emails"][0] };
                assert_eq!(email["body"], text, "{path} {most}");
                assert_eq!(
                    (&email["content_truncated"], &email["body_original_char_count"]),
                    (&json!(true), &json!(200))
                );
            }
        }
        for most in [200, 100_000] {
            let answer = inbox.get(&format!("{path}?max_body_chars={most}")).await;
            let email = if path.contains('/') { &answer } else { &answer["emails"][0] };
            assert_eq!((&email["body"], &email["content_truncated"]), (&whole["body"], &json!(false)));
            assert!(email.get("body_original_char_count").is_none());
        }
        for most in ["0", "100001", "-1", "x", ""] {
            let refused = inbox.try_get(&format!("{path}?max_body_chars={most}")).await;
            assert_refuses_fields(&refused, &["max_body_chars"]);
        }
    }
    // Without a bound of the caller's, safe text has its own.
    let long = server.receive(&inbox.address, plain("Longer", &"word ".repeat(5000))).await;
    for (path, inside) in
        [(format!("emails/{long}?agent_safe_content=true"), ""), (format!("emails/{long}/context"), "email")]
    {
        let answer = inbox.get(&path).await;
        let email = if inside.is_empty() { &answer } else { &answer[inside] };
        assert_eq!(email["body"].as_str().unwrap().chars().count(), 20_000);
        assert_eq!(email["content_truncated"], true);
        assert!(email["body_original_char_count"].as_i64().unwrap() >= 24_999);
    }
}

// rules: READ-10
#[both_engines]
async fn a_budget_goes_to_the_newest_mails_first(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    for number in 1..=4 {
        server.clock.advance(60);
        server
            .receive(&inbox.address, plain(&format!("Mail {number}"), &number.to_string().repeat(99)))
            .await;
    }
    for direction in ["DESC", "ASC"] {
        let list = inbox.get(&format!("emails?max_total_chars=250&sortDirection={direction}")).await;
        let mut emails = list["emails"].as_array().unwrap().clone();
        if direction == "ASC" {
            emails.reverse();
        }
        let lengths: Vec<usize> =
            emails.iter().map(|email| email["body"].as_str().unwrap().chars().count()).collect();
        assert_eq!(lengths, [100, 100, 50, 0], "{direction}");
        let cut: Vec<bool> = emails.iter().map(|email| email["content_truncated"] == true).collect();
        assert_eq!(cut, [false, false, true, true]);
        assert_eq!(emails[3]["body_original_char_count"], 100);
    }
    let both = inbox.get("emails?max_total_chars=250&max_body_chars=80").await;
    let lengths: Vec<usize> =
        both["emails"].as_array().unwrap().iter().map(|one| one["body"].as_str().unwrap().len()).collect();
    assert_eq!(lengths, [80, 80, 80, 10]);
    assert_refuses_fields(&inbox.try_get("emails?max_total_chars=0").await, &["max_total_chars"]);
}

// rules: READ-3
#[both_engines]
async fn booleans_are_written_in_four_ways(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let id = server.receive(&inbox.address, plain("One", "text")).await;
    for (path, name) in [
        (format!("emails/{id}"), "metadata_only"),
        ("emails".to_owned(), "metadata_only"),
        ("emails".to_owned(), "is_read"),
        ("emails".to_owned(), "threaded"),
        ("search".to_owned(), "has_attachment"),
        (format!("emails/{id}/context"), "include_held"),
    ] {
        for value in ["true", "1", "false", "0"] {
            assert_eq!(
                inbox.try_get(&format!("{path}?{name}={value}")).await.status,
                200,
                "{path} {name} {value}"
            );
        }
        for value in ["TRUE", "yes", "", "2", "on", "null"] {
            assert_refuses_fields(&inbox.try_get(&format!("{path}?{name}={value}")).await, &[name]);
        }
    }
    let omitted = |answer: Value| answer["content_omitted"] == true;
    assert!(omitted(inbox.get(&format!("emails/{id}?metadata_only=1")).await));
    assert!(!omitted(inbox.get(&format!("emails/{id}?metadata_only=0")).await));
}
