//! Backups of a store with mail: it reads and is found as before, on the same and on the other engine.

use std::{fmt::Write as _, fs, os::unix::fs::PermissionsExt};

use serde_json::Value;

use super::{
    Home, Server,
    mail::{Inbox, Smtp, message},
};

/// Hard to compress, so that it lies in the blob store.
fn large() -> Vec<u8> {
    let mut state = 1_u64;
    let mut noise = String::new();
    for _ in 0..9000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let _ = write!(noise, "{state:016x}{:016x}\r\n", state.wrapping_mul(31));
    }
    message("Large one", &format!("haystack with a needle in it\r\n{noise}"))
}

fn search(server: &Server, inbox: &Inbox, query: &str) -> Vec<Value> {
    let found = inbox.get(server, &format!("/search?query={query}"));
    found["emails"].as_array().unwrap().iter().map(|mail| mail["subject"].clone()).collect()
}

fn check(server: &Server, inbox: &Inbox) {
    inbox.assert_readable(server, "Large one", &large(), "needle");
    inbox.assert_readable(server, "Second", &message("Second", "plain words"), "plain");
    assert_eq!(
        search(server, inbox, "numbered"),
        ["Number 4", "Number 3", "Number 2", "Number 1", "Number 0"]
    );
    assert_eq!(search(server, inbox, "from:ann").len(), 7);
    assert_eq!(search(server, inbox, "deleted").len(), 0);
}

fn furnish(server: &Server, inbox: &Inbox) {
    let mut client = Smtp::connect(server.smtp);
    // One that goes again, so that rows of the index and rows of mails do not simply count alike.
    assert_eq!(client.send(&inbox.address, &message("Gone", "deleted words")).unwrap().0, 250);
    let gone = inbox.only(server, "Gone");
    let path = format!("{}/emails/{}?permanent=true", inbox.path, gone["id"].as_str().unwrap());
    assert_eq!(server.call(&inbox.key, "DELETE", &path, &Value::Null).status, 200);
    for raw in [large(), message("Second", "plain words")] {
        assert_eq!(client.send(&inbox.address, &raw).unwrap().0, 250);
    }
    for number in 0..5 {
        let raw = message(&format!("Number {number}"), "numbered letters");
        assert_eq!(client.send(&inbox.address, &raw).unwrap().0, 250);
    }
}

/// rules: CLI-11, CLI-13
#[test]
fn restored_mail_reads_and_is_found_on_and_across_engines() {
    for number in 0..4 {
        let home = |postgres: bool| if postgres { Home::postgres() } else { Some(Home::sqlite()) };
        let (Some(from), Some(to)) = (home(number / 2 == 1), home(number % 2 == 1)) else { continue };
        let server = from.serve();
        let inbox = Inbox::new(&from, &server, "enterprise");
        furnish(&server, &inbox);
        check(&server, &inbox);
        let backup = from.folder.path().join("saved");
        from.run(&["backup", backup.to_str().unwrap()]).succeeded();
        server.stop();
        fs::create_dir_all(to.data()).unwrap();
        fs::set_permissions(to.data(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::copy(from.data().join("master.key"), to.data().join("master.key")).unwrap();
        to.run(&["restore", backup.to_str().unwrap()]).succeeded();
        let said = to.run(&["doctor"]).succeeded().stdout;
        assert!(said.contains("search: 7 messages indexed"), "{said}");
        let server = to.serve();
        check(&server, &inbox);
        // Deleting goes by the new index, and new mail is found beside the old.
        let second = inbox.only(&server, "Second");
        let path = format!("{}/emails/{}?permanent=true", inbox.path, second["id"].as_str().unwrap());
        assert_eq!(server.call(&inbox.key, "DELETE", &path, &Value::Null).status, 200);
        assert_eq!(search(&server, &inbox, "from:ann").len(), 6);
        assert_eq!(
            Smtp::connect(server.smtp).send(&inbox.address, &message("New", "numbered too")).unwrap().0,
            250
        );
        assert_eq!(search(&server, &inbox, "numbered")[0], "New");
    }
}

/// rules: CLI-10, CLI-13
#[test]
fn a_lost_index_is_noticed_and_made_anew_while_the_server_runs() {
    for home in Home::on_each_engine() {
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        furnish(&server, &inbox);
        check(&server, &inbox);
        let lose = async {
            let db = store::Db::open(&home.database()).await.unwrap();
            let lost = db.system_write(async |tx| tx.run("DELETE FROM email_text", &[]).await).await;
            lost.unwrap();
        };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(lose);
        assert_eq!(search(&server, &inbox, "numbered").len(), 0);
        let said = home.run(&["doctor"]).failed(1).stdout;
        assert!(said.contains("0 of 7 messages are indexed; run `agent-mailbox reindex`"), "{said}");
        for _ in 0..2 {
            assert_eq!(home.run(&["reindex"]).succeeded().stdout, "Indexed 7 messages.\n");
            check(&server, &inbox);
        }
        let said = home.run(&["doctor"]).succeeded().stdout;
        assert!(said.contains("search: 7 messages indexed"), "{said}");
    }
}
