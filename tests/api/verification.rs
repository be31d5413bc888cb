//! Codes and links of sign-up mails.

use serde_json::json;
use testkit::{Engine, Server, both_engines};

use super::{
    help::keys,
    mails::{Inbox, flagged, html, plain, skipped},
};

// rules: READ-23
#[both_engines]
async fn codes_and_links_of_a_clean_mail_are_found(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let text = "Your verification code is 482913. It expires in 10 minutes.\r\n\r\nOrder 998877, 14.07.2026, 100 EUR, call 0800 123 456. (c) 2026";
    let id = server.receive(&inbox.address, plain("Your code", text)).await;
    let found = inbox.get(&format!("emails/{id}/verification")).await;
    let mut fields = keys(&found);
    fields.sort_unstable();
    assert_eq!(
        fields,
        ["codes", "content_omitted", "links", "recipient", "scan_status", "sender", "sender_authentication"]
    );
    let codes: Vec<&str> =
        found["codes"].as_array().unwrap().iter().map(|one| one["value"].as_str().unwrap()).collect();
    assert_eq!(codes, ["482913"]);
    let confidence = found["codes"][0]["confidence"].as_f64().unwrap();
    assert!(confidence > 0.5 && confidence <= 1.0, "{confidence}");
    assert!(found["codes"][0]["context"].as_str().unwrap().contains("482913"));
    assert_eq!((&found["scan_status"], &found["content_omitted"]), (&json!("clean"), &json!(false)));
    assert_eq!(
        (&found["sender"], &found["recipient"]),
        (&json!("Ann <ann@remote.test>"), &json!(inbox.address))
    );
    assert_eq!(found["sender_authentication"]["status"], "unknown");
    let page = "<p>Please confirm your email address.</p><a href=\"https://app.example.com/verify?token=abc123def456\">Verify email</a>";
    let id = server.receive(&inbox.address, html("Confirm your email", page)).await;
    let found = inbox.get(&format!("emails/{id}/verification")).await;
    let link = &found["links"][0];
    assert_eq!(link["url"], "https://app.example.com/verify?token=abc123def456", "{found}");
    assert_eq!((&link["host"], &link["text"]), (&json!("app.example.com"), &json!("Verify email")));
}

// rules: READ-23
#[both_engines]
async fn nothing_is_looked_for_in_a_mail_that_is_not_clean(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let fresh = server.receive(&inbox.address, plain("Your code", "Your code is 482913.")).await;
    inbox.set_scan(&server, &fresh, None).await;
    for (id, status) in [
        (server.receive(&inbox.address, flagged("Your code is 482913")).await, json!("flagged")),
        (server.receive(&inbox.address, skipped("Your code is 482913")).await, json!("skipped")),
        (fresh, json!(null)),
    ] {
        let found = inbox.get(&format!("emails/{id}/verification")).await;
        assert_eq!((&found["codes"], &found["links"]), (&json!([]), &json!([])));
        assert_eq!((&found["scan_status"], &found["content_omitted"]), (&status, &json!(true)));
        assert_eq!(found["content_omission_reason"], "scan_status_not_clean");
    }
}
