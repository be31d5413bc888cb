//! Two real processes on one PostgreSQL share a workspace's credits and requests exactly.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use serde_json::json;

use super::{Home, Server};

fn calls(servers: &[&Server], key: &str, number: usize) -> u32 {
    let passed = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let passed = &passed;
            scope.spawn(move || {
                for call in 0..number / 8 {
                    let server = servers[(thread + call) % servers.len()];
                    let answer = server.call(key, "GET", "/api/v1/rag/credentials", &json!(null));
                    match answer.status {
                        200 => {
                            passed.fetch_add(1, Ordering::SeqCst);
                        }
                        402 | 429 => {}
                        status => panic!("{status}: {}", answer.body),
                    }
                }
            });
        }
    });
    passed.into_inner()
}

/// rules: METER-6, METER-8
#[test]
fn two_processes_share_credits_and_requests_exactly() {
    let Some(home) = Home::postgres() else { return };
    let home = home
        .with("PLANS__FREE__CREDITS_PER_PERIOD", "137")
        .with("PLANS__FREE__RPM", "unlimited")
        .with("PLANS__DEVELOPER__RPM", "61");
    let (one, two) = (home.serve(), home.serve());
    let workspace = home.create_account("credits@people.test", "free");
    let (_, key) = home.create_key(&workspace, &[]);
    assert_eq!(calls(&[&one, &two], &key, 400), 137);
    let path = format!("/api/v1/workspaces/{workspace}/usage/credits");
    for server in [&one, &two] {
        assert_eq!(server.call(&key, "GET", &path, &json!(null)).json()["used"], 137);
    }

    let workspace = home.create_account("requests@people.test", "developer");
    let (_, key) = home.create_key(&workspace, &[]);
    // A window that ends half-way would let more through, rightly.
    loop {
        let started = seconds();
        let passed = calls(&[&one, &two], &key, 160);
        if seconds() / 60 == started / 60 {
            assert_eq!(passed, 61);
            break;
        }
        std::thread::sleep(Duration::from_secs(61 - seconds() % 60));
    }
}

#[expect(clippy::disallowed_methods, reason = "real processes go by the real clock")]
fn seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}
