//! The primary dies or freezes while mail arrives on two nodes, and its synchronous standby takes over: what was
//! acknowledged is there, and service is back within seconds.

use std::time::Duration;

use super::{
    Home,
    faults::OwnPostgres,
    load::{Addresses, Load, StopAtEnd, check},
    mail::Inbox,
};

/// How long service may be away after the promotion: five seconds, and as much again for a machine that does other things
/// as well.
const MAX_AWAY: Duration = Duration::from_secs(10);

/// The primary gets a signal in the middle of everything, and its standby is promoted.
fn fail_over(signal: &str) {
    let pair = OwnPostgres::pair();
    let home = Home::postgres_at(&pair.url).with("SMTP__CONNECTIONS_PER_MINUTE", "100000");
    let (one, two) = (home.serve(), home.serve());
    let inbox = Inbox::new(&home, &one, "enterprise");
    let (at_one, at_two) = (Addresses::of(&one), Addresses::of(&two));
    let loads = [Load::new("one"), Load::new("two")];
    let loads = [&loads[0], &loads[1]];
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&loads);
        loads[0].start(scope, &at_one, &inbox);
        loads[1].start(scope, &at_two, &inbox);
        for load in loads {
            load.wait_for(75);
        }
        pair.signal(signal);
        pair.promote();
        let promoted = std::time::Instant::now();
        for load in loads {
            load.wait_for(1);
        }
        let away = promoted.elapsed();
        println!("{signal}: both nodes took a message {away:?} after the promotion");
        for load in loads {
            load.wait_for(25);
        }
        // A node that starts while the former primary is away finds the present one.
        let third = home.serve();
        assert_eq!(third.get("/readyz", &[]).status, 200);
        assert!(away < MAX_AWAY, "{away:?}");
    });
    check(&one, &inbox, &loads);
    check(&two, &inbox, &loads);
    // The clean-up must not wait for a server that is frozen.
    pair.signal("KILL");
}

#[test]
fn a_primary_that_dies_loses_nothing_that_was_acknowledged() {
    fail_over("KILL");
}

#[test]
fn a_primary_that_freezes_loses_nothing_that_was_acknowledged() {
    fail_over("STOP");
}
