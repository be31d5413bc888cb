//! IDs and times, as they go in and come out.

use model::Plan;
use serde_json::json;
use testkit::{Engine, Server, both_engines};

use super::help::{assert_refuses_fields, new_mailbox, path_of};

/// rules: HTTP-4
#[both_engines]
async fn ids_say_what_they_are_of_and_sort_by_age(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let console = server.log_in(&tenant).await;
    let workspace = format!("/api/v1/workspaces/{}", tenant.workspace);
    let labels = format!("{}/custom-labels", path_of(&new_mailbox(&tenant.key, "A").await));
    let mut made: Vec<(&str, Vec<String>)> =
        vec![("mbx_", vec![]), ("lbl_", vec![]), ("inv_", vec![]), ("key_", vec![]), ("ses_", vec![])];
    // The clock stands still, then goes back: the order must hold all the same.
    for round in 0..12 {
        if round == 6 {
            server.clock.advance(-60);
        }
        let answers = [
            tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok(),
            tenant.key.post(&labels, json!({ "name": format!("L{round}") })).await.ok(),
            tenant
                .key
                .post(&format!("{workspace}/invites"), json!({ "email": format!("p{round}@people.test") }))
                .await
                .ok(),
            console.post(&format!("{workspace}/api-keys"), json!({ "name": "K" })).await.ok(),
        ];
        for ((_, ids), answer) in made.iter_mut().zip(answers) {
            ids.push(answer["id"].as_str().unwrap().to_owned());
        }
        let session = server.log_in(&tenant).await.get("/api/console/sessions").await.ok();
        let current = session.as_array().unwrap().iter().find(|session| session["current"] == true).unwrap();
        made[4].1.push(current["id"].as_str().unwrap().to_owned());
    }
    for (prefix, ids) in &made {
        assert!(ids.iter().all(|id| id.starts_with(prefix) && id.len() == prefix.len() + 26), "{ids:?}");
        assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
    }
    assert!(tenant.workspace.as_str().starts_with("ws_"));
    let member = tenant.key.get(&format!("{workspace}/members")).await.ok();
    assert!(member[0]["id"].as_str().unwrap().starts_with("acc_"));
    let affiliate = tenant.key.post("/api/v1/affiliate/signup", json!({})).await.ok();
    assert!(affiliate["id"].as_str().unwrap().starts_with("aff_"));
}

/// rules: HTTP-2
#[both_engines]
async fn times_are_given_in_utc_and_taken_with_any_offset(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let console = server.log_in(&tenant).await;
    let keys = format!("/api/v1/workspaces/{}/api-keys", tenant.workspace);
    for (given, shown) in [
        ("2026-08-01T00:00:00Z", "2026-08-01T00:00:00.000Z"),
        ("2026-08-01T02:00:00+02:00", "2026-08-01T00:00:00.000Z"),
        ("2026-07-31T12:30:00.5-11:30", "2026-08-01T00:00:00.500Z"),
        ("2026-08-01t00:00:00.123456z", "2026-08-01T00:00:00.123Z"),
    ] {
        let made = console.post(&keys, json!({ "name": "K", "expires_at": given })).await.ok();
        assert_eq!(
            (&made["expires_at"], &made["created_at"]),
            (&json!(shown), &json!("2026-07-14T09:00:00.000Z"))
        );
    }
    for given in [
        json!("2026-08-01T00:00:00"),
        json!("2026-08-01"),
        json!("2026-02-30T00:00:00Z"),
        json!("tomorrow"),
        json!(""),
        json!(1_785_542_400),
        json!("2026-08-01T25:00:00Z"),
        json!("999999-01-01T00:00:00Z"),
    ] {
        let answer = console.post(&keys, json!({ "name": "K", "expires_at": given })).await;
        assert_refuses_fields(&answer, &["expires_at"]);
    }
    let raw = tenant.key.get("/api/v1/workspaces").await.text();
    assert!(raw.contains("\"created_at\":\"2026-07-14T09:00:00.000Z\""), "{raw}");
}
