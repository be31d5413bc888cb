//! `kill -9` and power cuts while mail comes in: what was acknowledged is there once, byte for byte.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    Home, Server,
    faults::Disk,
    mail::{Inbox, Smtp, hash, message},
    text,
};

/// Sessions that bring mail at the same time.
const SESSIONS: usize = 32;

/// One message that was sent.
#[derive(Clone, Debug)]
struct Sent {
    mailbox: usize,
    subject: String,
    hash: String,
    /// False while it is unknown whether it was stored.
    acknowledged: bool,
}

/// A message with a token as its subject; every sixteenth is too large for a row and hard to compress.
fn mixed(subject: &str, number: u32) -> Vec<u8> {
    if !number.is_multiple_of(16) {
        return message(
            subject,
            &format!("the words of {subject} {}", "and more ".repeat(number as usize % 90)),
        );
    }
    let mut state = u64::from(number) * 2 + 1;
    let mut line = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{state:016x}{:016x}{:016x}\r\n", state.rotate_left(17) ^ 0x5555, state.wrapping_mul(97))
    };
    let noise: String = (0..6_000).map(|_| line()).collect();
    message(subject, &noise)
}

/// Sends over one connection until the server is gone or it is time to stop; what was not answered is unknown.
fn send_until(
    stop: &AtomicBool,
    smtp: SocketAddr,
    inboxes: &[Inbox],
    (round, numbers): (u32, &AtomicU32),
    answered: &AtomicU32,
) -> Vec<Sent> {
    let mut all = Vec::new();
    let Ok(mut client) = Smtp::try_connect(smtp, "EHLO") else { return all };
    while !stop.load(Ordering::SeqCst) {
        let number = numbers.fetch_add(1, Ordering::SeqCst);
        let mailbox = number as usize % inboxes.len();
        let subject = format!("token-{round}-{number}");
        let raw = mixed(&subject, number);
        let outcome = client.send(&inboxes[mailbox].address, &raw);
        let mut sent = Sent { mailbox, subject, hash: hash(&raw), acknowledged: false };
        match outcome {
            Ok((250, _)) => {
                sent.acknowledged = true;
                answered.fetch_add(1, Ordering::SeqCst);
            }
            Ok((_, reply)) => panic!("{reply}"),
            Err(_) => {}
        }
        let unknown = !sent.acknowledged;
        all.push(sent);
        if unknown {
            break;
        }
    }
    all
}

fn one_round(server: &Server, inboxes: &[Inbox], round: u32, numbers: &AtomicU32) -> Vec<Sent> {
    let (stop, answered, history) = (AtomicBool::new(false), AtomicU32::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..SESSIONS {
            scope.spawn(|| {
                let sent = send_until(&stop, server.smtp, inboxes, (round, numbers), &answered);
                history.lock().unwrap().extend(sent);
            });
        }
        // In the middle of things, however fast the machine is.
        let started = Instant::now();
        while answered.load(Ordering::SeqCst) < 60 + 37 * round % 50
            && started.elapsed() < Duration::from_secs(8)
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        server.signal("KILL");
        stop.store(true, Ordering::SeqCst);
    });
    history.into_inner().unwrap()
}

/// Every acknowledged mail is there once with the bytes that were sent, every other one at most once, and nothing else.
fn check(server: &Server, inboxes: &[Inbox], history: &[Sent]) {
    let next = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(inbox) = inboxes.get(next.fetch_add(1, Ordering::SeqCst) as usize) {
                    let number = inboxes.iter().position(|other| other.address == inbox.address).unwrap();
                    check_one(
                        server,
                        inbox,
                        &history.iter().filter(|sent| sent.mailbox == number).collect::<Vec<_>>(),
                    );
                }
            });
        }
    });
}

fn check_one(server: &Server, inbox: &Inbox, history: &[&Sent]) {
    let mut present: HashMap<String, Vec<String>> = HashMap::new();
    for mail in inbox.list(server) {
        present.entry(text(&mail, "subject")).or_default().push(text(&mail, "id"));
    }
    for sent in history {
        let found = present.remove(&sent.subject).unwrap_or_default();
        assert!(found.len() <= 1, "twice: {sent:?}");
        assert!(found.len() == 1 || !sent.acknowledged, "lost: {sent:?}");
        // A row without its message would fail here.
        for id in found {
            assert_eq!(hash(&inbox.raw(server, &id)), sent.hash, "altered: {sent:?}");
            let by_words = inbox.get(server, &format!("/search?query=subject:%22{}%22", sent.subject));
            assert_eq!(by_words["emails"][0]["id"], id.as_str(), "not indexed: {sent:?}: {by_words}");
        }
    }
    assert!(present.is_empty(), "never sent: {present:?}");
}

/// `AGENT_MAILBOX_CRASHES=200` runs as many cycles.
/// rules: RECV-2, RECV-3, CLI-12
#[test]
fn kill_9_during_smtp_loses_no_mail_and_doubles_none() {
    let rounds =
        std::env::var("AGENT_MAILBOX_CRASHES").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3);
    for home in Home::on_each_engine() {
        let home = home.with("SMTP__CONNECTIONS_PER_MINUTE", "1000000");
        let mut server = home.serve();
        let first = Inbox::new(&home, &server, "enterprise");
        let mut inboxes: Vec<Inbox> =
            (0..7).map(|_| Inbox::add(&server, first.workspace.clone(), first.key.clone())).collect();
        inboxes.push(first);
        let (mut history, numbers) = (Vec::new(), AtomicU32::new(0));
        for round in 0..rounds {
            history.extend(one_round(&server, &inboxes, round, &numbers));
            server.wait(Duration::from_secs(5));
            server = home.serve();
            // Two seconds, and time for a machine that does other things as well.
            assert!(server.ready_after < Duration::from_secs(10), "{:?}", server.ready_after);
        }
        let unknown = history.iter().filter(|sent| !sent.acknowledged).count();
        println!("{} mails, {unknown} of them unanswered", history.len());
        assert!(history.len() > unknown + 50, "too few mails to tell");
        check(&server, &inboxes, &history);
    }
}

/// The page cache is lost, as in the test of the same kind for the API: small mails lie in the database, large ones in
/// files of their own, and both were synced before they were acknowledged.
/// rules: RECV-2
#[test]
fn a_power_cut_loses_no_acknowledged_mail() {
    let home = Home::sqlite();
    let Some(disk) = Disk::new(&home) else { return };
    let server = home.serve();
    let inboxes = [Inbox::new(&home, &server, "enterprise")];
    let (mut client, mut history) = (Smtp::connect(server.smtp), Vec::new());
    for number in 0..48 {
        let subject = format!("cut-{number}");
        let raw = mixed(&subject, number);
        let (code, reply) = client.send(&inboxes[0].address, &raw).unwrap();
        assert_eq!(code, 250, "{reply}");
        history.push(Sent { mailbox: 0, subject, hash: hash(&raw), acknowledged: true });
    }
    disk.cut();
    drop(server);
    let Some(_again) = disk.after_the_cut() else { return };
    let server = home.serve();
    check(&server, &inboxes, &history);
    let blobs = home.data().join("blobs");
    assert!(
        std::fs::read_dir(blobs).unwrap().next().is_some(),
        "nothing was large enough for the blob store"
    );
}
