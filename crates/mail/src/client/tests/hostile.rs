//! Servers that hang, drip, talk without end, talk out of turn or vanish. Tokio's clock stands still and jumps when
//! nobody has anything to do.

use std::iter::repeat_n;

use proptest::prelude::*;
use tokio::time::{Instant, sleep};

use super::super::reply::PartialReply;
use super::super::{Credentials, Phase, Tls};
use super::*;

/// Where a server can stop answering, in the order of a conversation.
const STAGES: [(&str, &str); 7] = [
    ("", "Greeting"),
    ("S: 220 x\nC: EHLO us.test\n", "Hello"),
    ("S: 250 x\nC: MAIL FROM:<ann@us.test>\n", "Sender"),
    ("S: 250 ok\nC: RCPT TO:<a@x.test>\n", "Recipient"),
    ("S: 250 ok\nC: DATA\n", "Content"),
    ("S: 354 go\nC: Subject: Hi\nC:\nC: ..\nC: ...\nC: ..x\nC: Bye\nC: .\n", "Finish"),
    ("S: 250 ok\n", "done"),
];

fn up_to(stage: usize) -> String {
    STAGES[..=stage].iter().map(|(script, _)| *script).collect()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_left_at_every_stage() {
    let limits = Timeouts::default();
    let waits =
        [limits.greeting, limits.command, limits.command, limits.recipient, limits.data, limits.finish];
    for (stage, wait) in waits.into_iter().enumerate() {
        let started = Instant::now();
        let (stream, task) = server(&up_to(stage), 4096);
        let found = match Connection::start(stream, &options()).await {
            Err(error) => format!("{error:?}"),
            Ok(mut connection) => {
                let recipients = ["a@x.test".to_owned()];
                let mail =
                    MailObject { from: Some("ann@us.test"), recipients: &recipients, content: CONTENT };
                format!("{:?}", connection.send(&mail).await.unwrap()[0])
            }
        };
        let expected = match STAGES[stage].1 {
            name @ ("Greeting" | "Hello") => format!("Timeout({name})"),
            "Finish" => "Uncertain(Timeout(Finish))".to_owned(),
            name => format!("Failed(Timeout({name}))"),
        };
        assert_eq!(found, expected);
        assert_eq!(started.elapsed(), wait, "{}", STAGES[stage].1);
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_vanishes_leaves_doubt_only_at_the_end() {
    for (stage, (_, name)) in STAGES.iter().enumerate().take(6) {
        let found = {
            let (stream, _task) = server(&format!("{}END", up_to(stage)), 4096);
            match Connection::start(stream, &options()).await {
                Err(error) => format!("{error:?}"),
                Ok(mut connection) => {
                    let recipients = ["a@x.test".to_owned()];
                    let mail =
                        MailObject { from: Some("ann@us.test"), recipients: &recipients, content: CONTENT };
                    let found = connection.send(&mail).await.unwrap();
                    assert!(!connection.is_usable());
                    format!("{:?}", found[0])
                }
            }
        };
        let expected = match *name {
            name @ ("Greeting" | "Hello") => format!("Closed({name})"),
            "Finish" => "Uncertain(Closed(Finish))".to_owned(),
            name => format!("Failed(Closed({name}))"),
        };
        assert_eq!(found, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_drip_do_not_win_time() {
    let (ours, mut theirs) = duplex(64);
    tokio::spawn(async move {
        loop {
            if theirs.write_all(b"2").await.is_err() {
                return;
            }
            sleep(Duration::from_secs(10)).await;
        }
    });
    let started = Instant::now();
    let error = Connection::start(ours, &options()).await.unwrap_err();
    assert_eq!(error, Error::Timeout(Phase::Greeting));
    assert_eq!(started.elapsed(), Timeouts::default().greeting);
}

#[tokio::test(start_paused = true)]
async fn a_slow_conversation_ends_with_its_total() {
    // Every recipient takes four minutes, which each of them may.
    let (ours, mut theirs) = duplex(4096);
    tokio::spawn(async move {
        let mut buffer = [0; 4096];
        theirs.write_all(b"220 x\r\n").await.unwrap();
        while theirs.read(&mut buffer).await.is_ok_and(|length| length > 0) {
            sleep(Duration::from_mins(4)).await;
            if theirs.write_all(b"250 ok\r\n").await.is_err() {
                return;
            }
        }
    });
    let mut connection = Connection::start(ours, &options()).await.unwrap();
    let recipients: Vec<String> = (0..100).map(|number| format!("{number}@x.test")).collect();
    let started = Instant::now();
    let mail = MailObject { from: None, recipients: &recipients, content: CONTENT };
    let found = connection.send(&mail).await.unwrap();
    assert_eq!(started.elapsed(), Timeouts::default().total);
    assert_eq!(found[99], Outcome::Failed(Error::Timeout(Phase::Recipient)));
    // Those that were accepted before have not got it either.
    assert_eq!(found[0], Outcome::Failed(Error::Timeout(Phase::Recipient)));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_no_content_is_left() {
    let script = "S: 220 x\nC: EHLO us.test\nS: 250 x\nC: MAIL FROM:<>\nS: 250 ok\nC: RCPT TO:<a@x.test>\nS: 250 ok\nC: DATA\nS: 354 go";
    let (ours, mut theirs) = duplex(4096);
    let script = script.to_owned();
    tokio::spawn(async move {
        for line in script.lines() {
            let text = format!("{}\r\n", &line[3..]);
            if line.starts_with('S') {
                theirs.write_all(text.as_bytes()).await.unwrap();
            } else {
                theirs.read_exact(&mut vec![0; text.len()]).await.unwrap();
            }
        }
        sleep(Duration::from_hours(10)).await;
        drop(theirs);
    });
    let mut connection = Connection::start(ours, &options()).await.unwrap();
    let content = b"x\r\n".repeat(100_000);
    let recipients = ["a@x.test".to_owned()];
    let started = Instant::now();
    let found = connection
        .send(&MailObject { from: None, recipients: &recipients, content: &content })
        .await
        .unwrap();
    assert_eq!(found, [Outcome::Failed(Error::Timeout(Phase::Content))]);
    assert!(started.elapsed() <= Timeouts::default().block + Duration::from_secs(2));
}

#[tokio::test]
async fn replies_without_end_are_cut_short() {
    let huge_line = format!("S! 220 {}", "x".repeat(100_000));
    let many_lines = repeat_n("S: 220-welcome\n", 10_000).collect::<String>();
    let wide_lines = repeat_n(format!("S: 220-{}\n", "x".repeat(2000)), 100).collect::<String>();
    for script in [huge_line, many_lines, wide_lines] {
        let (ours, mut theirs) = duplex(4096);
        let task = tokio::spawn(async move {
            for line in script.lines() {
                let end = if line.starts_with("S: ") { "\r\n" } else { "" };
                if theirs.write_all(format!("{}{end}", &line[3..]).as_bytes()).await.is_err() {
                    return;
                }
            }
        });
        let error = Connection::start(ours, &options()).await.unwrap_err();
        assert!(matches!(error, Error::Protocol(Phase::Greeting, _)), "{error:?}");
        task.await.unwrap();
    }
}

#[tokio::test]
async fn what_is_no_reply_is_refused() {
    for greeting in [
        "HTTP/1.1 400 Bad Request",
        "220x",
        "22",
        "",
        "999 x",
        "120 x",
        "220-a\r\n221 b",
        "\u{0}\u{1}\u{2}\u{3}",
    ] {
        let (ours, mut theirs) = duplex(4096);
        theirs.write_all(format!("{greeting}\r\n").as_bytes()).await.unwrap();
        let error = Connection::start(ours, &options()).await.unwrap_err();
        assert!(matches!(error, Error::Protocol(Phase::Greeting, _)), "{greeting:?}: {error:?}");
    }
    for (greeting, permanent) in [("554 No", true), ("421 Later", false)] {
        let (ours, mut theirs) = duplex(4096);
        theirs.write_all(format!("{greeting}\r\n").as_bytes()).await.unwrap();
        let error = Connection::start(ours, &options()).await.unwrap_err();
        assert_eq!((error.is_permanent(), error.reply().is_some()), (permanent, true));
    }
}

#[tokio::test]
async fn answers_before_the_question_are_refused() {
    let (ours, mut theirs) = duplex(4096);
    theirs.write_all(b"220 x\r\n250 x\r\n250 ok\r\n").await.unwrap();
    let error = Connection::start(ours, &options()).await.unwrap_err();
    assert_eq!(error, Error::Protocol(Phase::Hello, "an answer before the question"));
}

#[tokio::test]
async fn nothing_can_be_put_in_before_the_handshake() {
    let (ours, mut theirs) = duplex(4096);
    let task = tokio::spawn(async move {
        let mut buffer = [0; 100];
        theirs.write_all(b"220 x\r\n").await.unwrap();
        theirs.read_exact(&mut buffer[.."EHLO us.test\r\n".len()]).await.unwrap();
        theirs.write_all(b"250-x\r\n250 STARTTLS\r\n").await.unwrap();
        theirs.read_exact(&mut buffer[.."STARTTLS\r\n".len()]).await.unwrap();
        // In one piece with the answer comes what an eavesdropper wants to be taken for a secured answer.
        theirs.write_all(b"220 go\r\n250-x\r\n250 AUTH PLAIN\r\n").await.unwrap();
        let mut rest = Vec::new();
        theirs.read_to_end(&mut rest).await.unwrap();
        rest
    });
    let tls = Tls::with_roots(Vec::new()).unwrap();
    let options = Options { security: Security::Opportunistic(tls), ..options() };
    let error = Connection::start(ours, &options).await.unwrap_err();
    assert_eq!(error, Error::Protocol(Phase::Tls, "an answer before the question"));
    assert_eq!(task.await.unwrap(), b"");
}

// rules: SEND-16
#[tokio::test]
async fn passwords_never_leave_without_encryption() {
    let script = "S: 220 x\nC: EHLO us.test\nS: 250-x\nS: 250 AUTH PLAIN LOGIN";
    let credentials = Some(Credentials::new("ann", "secret"));
    let tls = Tls::with_roots(Vec::new()).unwrap();
    for security in [Security::None, Security::Opportunistic(tls.clone())] {
        let (stream, task) = server(script, 4096);
        let options = Options { credentials: credentials.clone(), security, ..options() };
        assert_eq!(Connection::start(stream, &options).await.unwrap_err(), Error::NoAuth);
        task.await.unwrap();
    }
    let (stream, task) = server(script, 4096);
    let options = Options { credentials, security: Security::StartTls(tls), ..options() };
    assert_eq!(Connection::start(stream, &options).await.unwrap_err(), Error::NoTls);
    task.await.unwrap();
    assert!(!format!("{:?}", Credentials::new("ann", "secret")).contains("secret"));
}

proptest! {
    #[test]
    fn any_line_is_read_or_refused(lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..5)) {
        let mut partial = PartialReply::default();
        for line in [b"250-x".to_vec(), b"250-5.1.1".to_vec()].iter().chain(&lines) {
            if let Ok(Some(reply)) = partial.take(line) {
                prop_assert!((200..600).contains(&reply.code()));
                prop_assert!(!reply.text().chars().any(char::is_control));
            }
        }
    }
}
