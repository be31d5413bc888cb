//! Mail while something it needs is full, read-only or away.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use super::{
    Home, Server,
    faults::{Mount, OwnPostgres, run},
    mail::{Inbox, Smtp, message},
};

/// Sends over a new connection and gives the code and how long it took.
fn send(server: &Server, inbox: &Inbox, subject: &str) -> (u16, Duration) {
    let started = Instant::now();
    let (code, _) = Smtp::connect(server.smtp).send(&inbox.address, &message(subject, "some words")).unwrap();
    (code, started.elapsed())
}

/// Sends until it is taken again.
fn heals_within(server: &Server, inbox: &Inbox, most: Duration) {
    let started = Instant::now();
    while send(server, inbox, "Healed").0 != 250 {
        assert!(started.elapsed() < most, "still failing");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Fills a file system up to so many free bytes.
fn fill(at: &PathBuf, leave: u64) {
    let room = std::process::Command::new("stat").args(["-f", "-c", "%a %S"]).arg(at).output().unwrap();
    let room = String::from_utf8(room.stdout).unwrap();
    let numbers: Vec<u64> = room.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let size = (numbers[0] * numbers[1]).saturating_sub(leave);
    let mut filler = std::fs::File::create(at.join("filler")).unwrap();
    std::io::copy(&mut std::io::Read::take(std::io::repeat(7), size), &mut filler).unwrap();
}

/// rules: RECV-26
#[test]
fn a_disk_without_room_is_told_before_data_and_heals() {
    // On PostgreSQL the folder holds blobs only, and its room counts all the same.
    for home in Home::on_each_engine() {
        let home = home.with("SMTP__MAX_MESSAGE_BYTES", "2000000");
        let Some(mount) = Mount::new(home.data(), &["-t", "tmpfs", "-o", "size=64m", "tmpfs"]) else {
            return;
        };
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        assert_eq!(send(&server, &inbox, "Before").0, 250);
        // Room for the largest message, but not for half of it beside.
        fill(&mount.0, 2_500_000);
        let mut client = Smtp::connect(server.smtp);
        assert_eq!(client.say("MAIL FROM:<ann@remote.test>"), 452);
        assert_eq!(client.say(&format!("RCPT TO:<{}>", inbox.address)), 503);
        assert_eq!(inbox.list(&server).len(), 1, "reading goes on");
        std::fs::remove_file(mount.0.join("filler")).unwrap();
        assert_eq!(
            client.send(&inbox.address, &message("After", "room")).unwrap().0,
            250,
            "on the same connection"
        );
        heals_within(&server, &inbox, Duration::from_secs(5));
        drop(server);
    }
}

/// rules: RECV-26
#[test]
fn a_read_only_disk_puts_mail_off_and_heals() {
    let home = Home::sqlite().with("SMTP__MAX_MESSAGE_BYTES", "1000000");
    let Some(mount) = Mount::new(home.data(), &["-t", "tmpfs", "-o", "size=64m", "tmpfs"]) else { return };
    let server = home.serve();
    let inbox = Inbox::new(&home, &server, "enterprise");
    assert_eq!(send(&server, &inbox, "Before").0, 250);
    let at = mount.0.to_str().unwrap();
    if !run("mount", &["-o", "remount,ro", at]) {
        println!("skipped: the file system is busy");
        return;
    }
    let (code, _) = send(&server, &inbox, "During");
    assert!([451, 452].contains(&code), "{code}");
    assert_eq!(inbox.list(&server).len(), 1, "reading goes on");
    assert!(run("mount", &["-o", "remount,rw", at]));
    heals_within(&server, &inbox, Duration::from_secs(5));
    assert!(inbox.list(&server).iter().all(|mail| mail["subject"] != "During"));
}

/// rules: RECV-26
#[test]
fn a_postgresql_that_hangs_puts_mail_off_and_heals() {
    let postgres = OwnPostgres::start();
    let home = Home::postgres_at(&postgres.url);
    let server = home.serve();
    let inbox = Inbox::new(&home, &server, "enterprise");
    assert_eq!(send(&server, &inbox, "Before").0, 250);
    // One that has said for whom, and one that has said everything but the end.
    let mut waiting = Smtp::connect(server.smtp);
    for line in ["MAIL FROM:<ann@remote.test>", &format!("RCPT TO:<{}>", inbox.address), "DATA"] {
        assert!(waiting.say(line) < 400);
    }
    waiting.write(&message("Half", "way")).unwrap();
    postgres.signal("STOP");
    let started = Instant::now();
    assert_eq!(waiting.say("."), 451);
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    for _ in 0..3 {
        let (code, took) = send(&server, &inbox, "During");
        assert_eq!(code, 451);
        // Two seconds, and as much again for a machine that does other things as well.
        assert!(took < Duration::from_secs(4), "{took:?}");
    }
    postgres.signal("CONT");
    heals_within(&server, &inbox, Duration::from_secs(5));
    let subjects: Vec<_> = inbox.list(&server).into_iter().map(|mail| mail["subject"].clone()).collect();
    assert!(!subjects.contains(&"During".into()) && !subjects.contains(&"Half".into()), "{subjects:?}");
}
