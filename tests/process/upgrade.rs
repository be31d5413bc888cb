//! An upgrade of one node after the other: the last program that knows only the first history of the schema, and this one,
//! on one database under load. `scripts/test.all.d/50-upgrade` builds the former.

use std::path::PathBuf;

use super::{
    Home, Server,
    load::{Addresses, Load, StopAtEnd, check},
    mail::Inbox,
};

/// Messages that each acknowledges between two steps.
const STEP: usize = 50;

/// Waits until each of them has taken some more messages.
fn advance(loads: &[&Load]) {
    for load in loads {
        load.wait_for(STEP);
    }
}

#[test]
fn two_versions_run_side_by_side() {
    let Some(before) = std::env::var_os("AGENT_MAILBOX_BIN_BEFORE").map(PathBuf::from) else {
        println!("skipped: AGENT_MAILBOX_BIN_BEFORE does not name the program from before");
        return;
    };
    let home = Home::postgres().expect("run this with scripts/postgres");
    let home = home.with("SMTP__CONNECTIONS_PER_MINUTE", "100000");
    let serve_before = || Server::start(home.command_of(&before, &["serve"]));
    let (old, other_old) = (serve_before(), serve_before());
    let inbox = Inbox::new(&home, &old, "enterprise");
    let (at_old, at_other) = (Addresses::of(&old), Addresses::of(&other_old));
    let loads = [Load::new("old"), Load::new("other")];
    let loads = [&loads[0], &loads[1]];
    let servers = std::thread::scope(|scope| {
        let _stop = StopAtEnd(&loads);
        loads[0].start(scope, &at_old, &inbox);
        loads[1].start(scope, &at_other, &inbox);
        advance(&loads);
        // The new program migrates while the others go on. Then it takes the place of one that ends without a goodbye.
        let new = home.serve();
        advance(&loads);
        other_old.signal("KILL");
        at_other.change(&new);
        advance(&loads);
        // The program from before can be started again.
        let again = serve_before();
        assert_eq!(again.get("/readyz", &[]).status, 200);
        at_old.change(&again);
        old.signal("KILL");
        advance(&loads);
        advance(&loads);
        [new, again]
    });
    for server in &servers {
        check(server, &inbox, &loads);
        let mut all = inbox.list(server);
        all.retain(|mail| mail["subject"].as_str().unwrap().contains("-m-"));
        for mail in [&all[0], &all[all.len() - 1]] {
            let raw = inbox.raw(server, mail["id"].as_str().unwrap());
            assert!(String::from_utf8_lossy(&raw).contains("some words"));
        }
        let found = inbox.get(server, "/search?query=words&limit=1");
        assert_eq!(found["emails"].as_array().unwrap().len(), 1, "{found}");
    }
}
