//! Whole conversations, with streams that hold one byte and streams that hold many.

use super::super::{InvalidMessage, Phase, check_content};
use super::*;

const ROOMS: [usize; 5] = [1, 2, 3, 7, 4096];

async fn outcomes(script: &str, recipients: &[&str], expected: &[&str]) {
    for room in ROOMS {
        let found = deliver(script, room, recipients).await.unwrap();
        assert_eq!(found.iter().map(brief).collect::<Vec<_>>(), expected, "room for {room}");
    }
}

#[tokio::test]
async fn a_plain_server_gets_one_command_at_a_time() {
    let script = "
        S: 220 mx.test ready
        C: EHLO us.test
        S: 502 What?
        C: HELO us.test
        S: 250 mx.test
        C: MAIL FROM:<ann@us.test>
        S: 250 ok
        C: RCPT TO:<a@x.test>
        S: 250 ok
        C: RCPT TO:<b@x.test>
        S: 550 5.1.1 Nobody
        C: RCPT TO:<c@x.test>
        S: 451 4.7.1 Grey
        C: DATA
        S: 354 go on
        C: Subject: Hi
        C:
        C: ..
        C: ...
        C: ..x
        C: Bye
        C: .
        S: 250 2.0.0 taken
        C: QUIT
        S: 221 bye";
    outcomes(script, &["a@x.test", "b@x.test", "c@x.test"], &["accepted 250", "never 550", "later 451"])
        .await;
}

#[tokio::test]
async fn a_modern_server_gets_everything_in_one_go() {
    let script = "
        S: 220-mx.test welcomes
        S: 220 you
        C: EHLO us.test
        S: 250-mx.test
        S: 250-SIZE 1000
        S: 250-8BITMIME
        S: 250-SMTPUTF8
        S: 250-PIPELINING
        S: 250 CHUNKING
        C: MAIL FROM:<ann@us.test> SIZE=31 SMTPUTF8
        C: RCPT TO:<a@x.test>
        C: RCPT TO:<jürgen@xn--bcher-kva.example>
        C: BDAT 31 LAST
        C: Subject: Hi
        C:
        C: .
        C: ..
        C: .x
        C: Bye
        S: 250 ok
        S: 250 ok
        S: 452 4.2.2 full
        S: 250 2.0.0 taken
        C: QUIT
        S: 221 bye";
    outcomes(script, &["a@x.test", "jürgen@bücher.example"], &["accepted 250", "later 452"]).await;
}

/// A conversation with a server that takes everything in one go, and answers like this.
fn pipelining(answers: &str) -> String {
    format!(
        "S: 220 x\nC: EHLO us.test\nS: 250-x\nS: 250-PIPELINING\nS: 250 CHUNKING\nC: MAIL FROM:<ann@us.test>\n\
         C: RCPT TO:<a@x.test>\nC: RCPT TO:<b@x.test>\nC: BDAT 31 LAST\nC: Subject: Hi\nC:\nC: .\nC: ..\nC: .x\nC: Bye\n\
         {answers}"
    )
}

#[tokio::test]
async fn refusals_in_one_go_are_told_apart() {
    let both = &["a@x.test", "b@x.test"];
    let quit = "C: QUIT\nS: 221 bye";
    let none = format!("S: 553 not you\nS: 503 no sender\nS: 503 no sender\nS: 503 no sender\n{quit}");
    outcomes(&pipelining(&none), both, &["never 553", "never 553"]).await;
    let nobody = format!("S: 250 ok\nS: 550 nobody\nS: 451 grey\nS: 554 no recipients\n{quit}");
    outcomes(&pipelining(&nobody), both, &["never 550", "later 451"]).await;
    let content = format!("S: 250 ok\nS: 250 ok\nS: 551 gone\nS: 554 spam\n{quit}");
    outcomes(&pipelining(&content), both, &["never 554", "never 551"]).await;
    outcomes(&pipelining("S: 250 ok\nS: 421 closing\nEND"), both, &["later 421", "later 421"]).await;
    outcomes(&pipelining("S: 553 not you\nEND"), both, &["never 553", "never 553"]).await;
}

/// A server that closes, or says so of one recipient: that one and those without an answer are for later. Whom it takes
/// the content for has it, and nothing that it says then refuses anybody.
/// rules: SEND-7
#[tokio::test]
async fn a_421_to_one_recipient_refuses_nobody() {
    let both = &["a@x.test", "b@x.test"];
    for (answers, expected) in [
        ("S: 250 ok\nS: 250 ok\nS: 421 busy\nS: 250 taken\n", ["accepted 250", "later 421"]),
        ("S: 250 ok\nS: 421 busy\nS: 250 ok\nS: 250 taken\n", ["later 421", "accepted 250"]),
        ("S: 250 ok\nS: 250 ok\nS: 421 closing\nEND", ["later 421", "later 421"]),
        ("S: 250 ok\nS: 421 closing\nEND", ["later 421", "later 421"]),
        ("S: 250 ok\nS: 421 closing\nS: 503 no sender\n", ["later 421", "later 421"]),
        ("S: 250 ok\nS: 250 ok\nS: 421 closing\nS: 554 no\n", ["later 421", "later 421"]),
        ("S: 250 ok\nS: 550 nobody\nS: 421 closing\nEND", ["never 550", "later 421"]),
        ("S: 250 ok\nS: 421 closing\nS: 421 closing\nEND", ["later 421", "later 421"]),
    ] {
        outcomes(&pipelining(answers), both, &expected).await;
    }
}

/// The same where the content waits for the answers to the envelope.
/// rules: SEND-7
#[tokio::test]
async fn a_421_before_the_content_refuses_nobody() {
    let names = &["a@x.test", "b@x.test", "c@x.test"];
    let hello = "S: 220 x\nC: EHLO us.test\nS: 250-x\nS: 250 PIPELINING\nC: MAIL FROM:<ann@us.test>\n\
        C: RCPT TO:<a@x.test>\nC: RCPT TO:<b@x.test>\nC: RCPT TO:<c@x.test>\nS: 250 ok\n";
    let content = "C: DATA\nS: 354 go\nC: Subject: Hi\nC:\nC: ..\nC: ...\nC: ..x\nC: Bye\nC: .\n";
    for (answers, expected) in [
        (
            format!("S: 250 ok\nS: 421 busy\nS: 250 ok\n{content}S: 250 taken\n"),
            ["accepted 250", "later 421", "accepted 250"],
        ),
        (
            format!("S: 250 ok\nS: 421 busy\nS: 550 no\n{content}S: 554 no\n"),
            ["later 421", "later 421", "later 421"],
        ),
        (
            "S: 250 ok\nS: 421 busy\nS: 503 no\nC: DATA\nS: 503 no\n".to_owned(),
            ["later 421", "later 421", "later 421"],
        ),
        ("S: 550 no\nS: 421 busy\nS: 421 busy\n".to_owned(), ["never 550", "later 421", "later 421"]),
        ("S: 250 ok\nS: 421 closing\nEND".to_owned(), ["later 421", "later 421", "later 421"]),
    ] {
        outcomes(&format!("{hello}{answers}"), names, &expected).await;
    }
    // One command at a time: who was not named yet is not named any more.
    let plain = "S: 220 x\nC: EHLO us.test\nS: 250 x\nC: MAIL FROM:<ann@us.test>\nS: 250 ok\nC: RCPT TO:<a@x.test>\nS: 250 ok\n\
        C: RCPT TO:<b@x.test>\nS: 421 busy\n";
    let script = format!("{plain}{content}S: 250 taken\n");
    outcomes(&script, names, &["accepted 250", "later 421", "later 421"]).await;
}

#[tokio::test]
async fn after_one_go_whatever_was_not_answered_is_in_doubt() {
    let both = &["a@x.test", "b@x.test"];
    for (answers, phase) in [
        ("", "MAIL"),
        ("S: 250 ok\n", "RCPT"),
        ("S: 250 ok\nS: 250 ok\nS: 550 no\n", "the end of the content"),
    ] {
        let doubt = format!("uncertain: The server closed the connection at {phase}.");
        let second = if answers.contains("550") { "never 550" } else { doubt.as_str() };
        outcomes(&pipelining(&format!("{answers}END")), both, &[&doubt, second]).await;
    }
}

#[tokio::test]
async fn a_server_that_has_hung_up_gets_no_content() {
    let hello = "S: 220 x\nC: EHLO us.test\nS: 250-x\nS: 250-PIPELINING\nS: 250 CHUNKING\n";
    for (last, expected) in [
        ("END", "failed: The server closed the connection at MAIL."),
        ("S: 421 4.4.2 idle for too long\nEND", "later 421"),
    ] {
        let (stream, task) = server(&format!("{hello}{last}"), 4096);
        let mut connection = Connection::start(stream, &options()).await.unwrap();
        task.await.unwrap();
        let recipients = ["a@x.test".to_owned()];
        let mail = MailObject { from: None, recipients: &recipients, content: CONTENT };
        assert_eq!(brief(&connection.send(&mail).await.unwrap()[0]), expected);
        assert!(!connection.is_usable());
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_quiet_is_asked_before_content_leaves() {
    let script = "
        S: 220 x
        C: EHLO us.test
        S: 250-x
        S: 250-PIPELINING
        S: 250 CHUNKING
        C: MAIL FROM:<>
        C: RCPT TO:<a@x.test>
        S: 250 ok
        S: 250 ok
        C: BDAT 31 LAST
        C: Subject: Hi
        C:
        C: .
        C: ..
        C: .x
        C: Bye
        S: 250 taken";
    let (stream, task) = server(script, 4096);
    let mut connection = Connection::start(stream, &options()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let recipients = ["a@x.test".to_owned()];
    let mail = MailObject { from: None, recipients: &recipients, content: CONTENT };
    assert_eq!(brief(&connection.send(&mail).await.unwrap()[0]), "accepted 250");
    drop(connection);
    task.await.unwrap();
}

#[tokio::test]
async fn a_refused_sender_refuses_everyone() {
    let script = "
        S: 220 x
        C: EHLO us.test
        S: 250-x
        S: 250 PIPELINING
        C: MAIL FROM:<ann@us.test>
        C: RCPT TO:<a@x.test>
        C: RCPT TO:<b@x.test>
        S: 553 5.7.1 not you
        S: 503 5.5.1 no sender
        S: 503 5.5.1 no sender
        C: QUIT
        S: 221 bye";
    outcomes(script, &["a@x.test", "b@x.test"], &["never 553", "never 553"]).await;
    let script = "
        S: 220 x
        C: EHLO us.test
        S: 250 x
        C: MAIL FROM:<ann@us.test>
        S: 450 4.3.2 busy
        C: QUIT
        S: 221 bye";
    outcomes(script, &["a@x.test", "b@x.test"], &["later 450", "later 450"]).await;
}

#[tokio::test]
async fn refusals_of_content_are_for_all_that_are_left() {
    for (answer, expected) in [("550 5.7.1 spam", "never 550"), ("452 4.3.1 full", "later 452")] {
        for at_data in [true, false] {
            let content = "S: 354 go\nC: Subject: Hi\nC:\nC: ..\nC: ...\nC: ..x\nC: Bye\nC: .\n";
            let content = if at_data { "" } else { content };
            let script = format!(
                "S: 220 x\nC: EHLO us.test\nS: 250 x\nC: MAIL FROM:<ann@us.test>\nS: 250 ok\nC: RCPT TO:<a@x.test>\nS: 250 ok\n\
                 C: RCPT TO:<b@x.test>\nS: 551 gone\nC: DATA\n{content}S: {answer}\nC: QUIT\nS: 221 bye"
            );
            outcomes(&script, &["a@x.test", "b@x.test"], &[expected, "never 551"]).await;
        }
    }
}

#[tokio::test]
async fn what_the_server_cannot_take_is_not_tried() {
    let script = "S: 220 x\nC: EHLO us.test\nS: 250-x\nS: 250 SIZE 10\nC: QUIT\nS: 221 bye";
    outcomes(script, &["a@x.test"], &["never 552"]).await;
    let script = "S: 220 x\nC: EHLO us.test\nS: 250 x\nC: MAIL FROM:<ann@us.test>\nS: 250 ok\nC: RCPT TO:<a@x.test>\nS: 550 no\n\
         C: QUIT\nS: 221 bye";
    outcomes(script, &["jürgen@x.test", "a@x.test"], &["never 553", "never 550"]).await;

    let (stream, task) = server("S: 220 x\nC: EHLO us.test\nS: 250 x\nC: QUIT\nS: 221 bye", 100);
    let mut connection = Connection::start(stream, &options()).await.unwrap();
    let recipients = ["a@x.test".to_owned()];
    let eight_bit =
        MailObject { from: None, recipients: &recipients, content: "A: b\r\n\r\nü\r\n".as_bytes() };
    assert_eq!(brief(&connection.send(&eight_bit).await.unwrap()[0]), "never 554");
    let utf8 = MailObject { from: None, recipients: &recipients, content: "A: ü\r\n\r\n\r\n".as_bytes() };
    assert_eq!(brief(&connection.send(&utf8).await.unwrap()[0]), "never 553");
    connection.quit().await;
    task.await.unwrap();
}

#[tokio::test]
async fn messages_follow_each_other_after_a_reset() {
    let script = "
        S: 220 x
        C: EHLO us.test
        S: 250-x
        S: 250 8BITMIME
        C: MAIL FROM:<>
        S: 250 ok
        C: RCPT TO:<a@x.test>
        S: 550 5.1.1 Nobody
        C: RSET
        S: 250 ok
        C: MAIL FROM:<> BODY=8BITMIME
        S: 250 ok
        C: RCPT TO:<b@x.test>
        S: 250 ok
        C: DATA
        S: 354 go
        C: A: b
        C:
        C: ü
        C: .
        S: 250 ok
        C: MAIL FROM:<>
        S: 250 ok
        C: RCPT TO:<a@x.test>
        S: 421 4.3.2 closing";
    for room in ROOMS {
        let (stream, task) = server(script, room);
        let mut connection = Connection::start(stream, &options()).await.unwrap();
        let (a, b) = (["a@x.test".to_owned()], ["b@x.test".to_owned()]);
        let mail = MailObject { from: None, recipients: &a, content: CONTENT };
        assert_eq!(brief(&connection.send(&mail).await.unwrap()[0]), "never 550");
        // The last line is ended where it was not.
        let other = MailObject { from: Some(""), recipients: &b, content: "A: b\r\n\r\nü".as_bytes() };
        assert_eq!(brief(&connection.send(&other).await.unwrap()[0]), "accepted 250");
        assert_eq!(brief(&connection.send(&mail).await.unwrap()[0]), "later 421");
        assert!(!connection.is_usable());
        let again = connection.send(&mail).await.unwrap();
        assert_eq!(again, [Outcome::Failed(Error::Closed(Phase::Sender))]);
        drop(connection);
        task.await.unwrap();
    }
}

#[tokio::test]
async fn many_recipients_go_in_groups() {
    let names: Vec<String> = (0..120).map(|number| format!("user{number}@x.test")).collect();
    let mut script =
        "S: 220 x\nC: EHLO us.test\nS: 250-x\nS: 250 PIPELINING\nC: MAIL FROM:<ann@us.test>\n".to_owned();
    for (group, names) in names.chunks(50).enumerate() {
        script.extend(names.iter().map(|name| format!("C: RCPT TO:<{name}>\n")));
        if group == 0 {
            script.push_str("S: 250 ok\n");
        }
        script.extend(names.iter().map(|_| "S: 250 ok\n"));
    }
    script.push_str("C: DATA\nS: 554 no\nC: QUIT\nS: 221 bye");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = deliver(&script, 64, &names).await.unwrap();
    assert!(found.len() == 120 && found.iter().all(|outcome| brief(outcome) == "never 554"));
}

#[test]
fn content_that_could_be_two_messages_is_not_sent() {
    for content in [&b"a\nb"[..], b"a\rb", b"a\r\n.\nb", b"\n", b"\r", b"a\r", b"a\r\r\n", b"\r\n.\r\r\n"] {
        assert_eq!(check_content(content), Err(InvalidMessage::BareLineEnd), "{content:?}");
    }
    assert_eq!(check_content(b"a\0b\r\n"), Err(InvalidMessage::Nul));
    assert_eq!(check_content(b""), Ok(()));
    assert_eq!(check_content(b"a\r\n\r\n.\r\nMAIL FROM:<x>\r\nb"), Ok(()));
}

#[tokio::test]
async fn envelopes_cannot_hold_commands() {
    let (stream, task) = server("S: 220 x\nC: EHLO us.test\nS: 250 x", 100);
    let mut connection = Connection::start(stream, &options()).await.unwrap();
    for address in ["a@x.test>\r\nRCPT TO:<b@x.test", "a@x.test> SIZE=1", "a", "\"a b\"@x.test", ""] {
        let recipients = [address.to_owned()];
        let mail = MailObject { from: None, recipients: &recipients, content: CONTENT };
        assert_eq!(connection.send(&mail).await, Err(InvalidMessage::Address(address.to_owned())));
    }
    let recipients = ["a@x.test".to_owned()];
    let mail = MailObject { from: Some("x@y>\r\nDATA"), recipients: &recipients, content: CONTENT };
    assert!(matches!(connection.send(&mail).await, Err(InvalidMessage::Address(_))));
    let nobody = MailObject { from: None, recipients: &[], content: CONTENT };
    assert_eq!(connection.send(&nobody).await, Err(InvalidMessage::NoRecipients));
    let split = MailObject { from: None, recipients: &recipients, content: b"a\r\n.\r\nb\n" };
    assert_eq!(connection.send(&split).await, Err(InvalidMessage::BareLineEnd));
    assert!(connection.is_usable());
    drop(connection);
    task.await.unwrap();
}

#[tokio::test]
async fn replies_are_read_as_people_write_them() {
    let script = "S: 220 x\nC: EHLO us.test\nS: 250 x\nC: MAIL FROM:<ann@us.test>\nS: 550-5.7.1 Your mail\u{7}\nS: 550-5.7.1 is not\n\
         S: 550 5.7.1 wanted\nC: QUIT\nS: 221";
    let found = deliver(script, 100, &["a@x.test"]).await.unwrap();
    let [Outcome::Refused(reply)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((reply.code(), reply.enhanced()), (550, Some("5.7.1")));
    assert_eq!(reply.text(), "Your mail is not wanted");
    assert_eq!(reply.to_string(), "550 5.7.1 Your mail is not wanted");
}
