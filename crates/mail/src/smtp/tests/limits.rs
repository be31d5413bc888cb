//! Bounds: lines, sizes, recipients, mistakes, memory.

use super::*;

/// A session that is past EHLO.
fn session(settings: Arc<Settings>, protocol: Protocol) -> Session<usize> {
    let address = ([127, 0, 0, 1], 1).into();
    let mut session = Session::new(settings, Client::new(address, protocol));
    session.input().extend_from_slice(if protocol == Protocol::Lmtp {
        b"LHLO me\r\n"
    } else {
        b"EHLO me\r\n"
    });
    assert!(matches!(session.step(), Step::Read));
    session.output().clear();
    session
}

/// Sends lines, takes every sender and recipient, and gives the next step that is neither, with the replies.
fn send(session: &mut Session<usize>, bytes: &[u8]) -> (Step<usize>, String) {
    session.input().extend_from_slice(bytes);
    let mut recipients = 0;
    loop {
        match session.step() {
            Step::Mail(_) => session.answer_mail(Ok(())),
            Step::Rcpt(_) => {
                recipients += 1;
                session.answer_rcpt(Ok(recipients));
            }
            step => return (step, String::from_utf8(std::mem::take(session.output())).unwrap()),
        }
    }
}

#[test]
fn command_lines_have_a_limit() {
    let noop = |length: usize| format!("NOOP {}\r\n", "x".repeat(length - 7));
    assert_eq!(codes(&["EHLO me\r\n", &noop(512), &noop(513), "NOOP\r\n"]), [250, 250, 500, 250]);
    let mail = |length: usize| format!("MAIL FROM:<>{}\r\n", " ".repeat(length - 14));
    assert_eq!(
        codes(&["EHLO me\r\n", &mail(2000), "RSET\r\n", &mail(2001), "NOOP\r\n"]),
        [250, 250, 250, 500, 250]
    );
    assert_eq!(codes(&["EHLO me\r\n", &noop(60_000), "NOOP\r\n"]), [250, 500, 250]);
    let endless = driven(&["EHLO me\r\n", &"x".repeat(40_000), &"x".repeat(40_000)]);
    assert!(endless.closed);
    assert_eq!(final_codes(&lines(&endless.replies)), [250, 500]);
}

#[test]
fn a_message_may_be_as_large_as_allowed_and_no_larger() {
    let content = |length: usize| format!("{}\r\n.\r\n", "x".repeat(length - 2));
    let largest = driven(&with_data(&[&content(MAX_MESSAGE)]));
    assert_eq!(messages(&largest)[0].len(), MAX_MESSAGE);
    let larger = driven(&with_data(&[&content(MAX_MESSAGE + 1), "MAIL FROM:<>\r\n"]));
    assert_eq!(larger.messages, []);
    assert_eq!(
        final_codes(&lines(&larger.replies)),
        [250, 250, 250, 354, 552, 250],
        "and the session goes on"
    );
    let endless = driven(&with_data(&[&"x".repeat(2 * MAX_MESSAGE), "xx", "x", "\r\n.\r\n"]));
    assert!(endless.closed);
    assert_eq!(final_codes(&lines(&endless.replies)), [250, 250, 250, 354, 552]);
}

#[test]
fn long_text_lines_are_taken() {
    let line = "é".repeat(40_000);
    let driven = driven(&with_data(&[&line, "\r\n.\r\n"]));
    assert_eq!(messages(&driven), [format!("{line}\r\n")]);
}

#[test]
fn a_message_has_at_most_1000_recipients() {
    let mut session = session(settings(), Protocol::Smtp);
    let (_, replies) = send(
        &mut session,
        format!("MAIL FROM:<>\r\n{}", "RCPT TO:<a@b.example>\r\n".repeat(1002)).as_bytes(),
    );
    assert_eq!(replies.matches("250 2.1.5").count(), 1000);
    assert_eq!(replies.matches("452 4.5.3").count(), 2);
    send(&mut session, b"DATA\r\n");
    let (step, _) = send(&mut session, b"hi\r\n.\r\n");
    assert!(matches!(step, Step::Message(envelope) if envelope.recipients.len() == 1000));
}

/// rules: RECV-11
#[test]
fn twenty_mistakes_end_the_session_and_the_later_ones_cost_time() {
    let mut session = session(settings(), Protocol::Smtp);
    session.input().extend_from_slice("WHAT\r\n".repeat(100).as_bytes());
    let mut pauses = 0;
    loop {
        match session.step() {
            Step::Pause(time) => pauses += time.as_secs(),
            Step::Close { .. } => break,
            step => panic!("{step:?}"),
        }
    }
    let replies = String::from_utf8(session.output().clone()).unwrap();
    assert_eq!((replies.matches("500 ").count(), pauses), (20, 9));
    assert!(replies.ends_with("421 4.7.0 Too many errors\r\n"), "{replies}");
}

#[test]
fn a_message_forgives_mistakes() {
    let mut pieces = vec!["EHLO me\r\n"];
    for _ in 0..10 {
        pieces.extend(["WHAT\r\n"; 19]);
        pieces.push("MAIL FROM:<>\r\nRCPT TO:<c@d.example>\r\nBDAT 2 LAST\r\nhi");
    }
    let driven = driven(&pieces);
    assert_eq!((driven.messages.len(), driven.closed), (10, false));
}

#[test]
fn idle_commands_have_a_limit() {
    for command in ["NOOP\r\n", "RSET\r\n", "VRFY a\r\n", "HELP\r\n"] {
        let driven = driven(&["EHLO me\r\n", &command.repeat(2000)]);
        assert!(driven.closed, "{command:?}");
        assert!(driven.replies.ends_with(b"421 4.7.0 Too many commands without a message\r\n"));
        assert_eq!(lines(&driven.replies).len(), 9 + 999 + 1, "{command:?}");
    }
    let chunks = "BDAT 0\r\n".repeat(2000);
    assert!(driven(&[ENVELOPE[0], ENVELOPE[1], &chunks]).closed);
    let hellos = vec!["EHLO me\r\n"; 2000];
    assert!(driven(&hellos).closed);
}

#[test]
fn memory_is_counted_over_all_sessions() {
    let budget = Budget::new(60_000);
    let settings = Arc::new(Settings { budget: budget.clone(), ..Settings::clone(&settings()) });
    let envelope = b"MAIL FROM:<>\r\nRCPT TO:<a@b.example>\r\nDATA\r\n";
    let (mut first, mut second) =
        (session(settings.clone(), Protocol::Smtp), session(settings.clone(), Protocol::Smtp));
    send(&mut first, envelope);
    send(&mut second, envelope);
    assert_eq!(budget.free(), 60_000, "a session that waits takes nothing");
    send(&mut first, &vec![b'x'; 30_000]);
    assert_eq!(budget.free(), 30_000);
    let (_, replies) = send(&mut second, &vec![b'x'; 40_000]);
    assert_eq!((replies.as_str(), budget.free()), ("", 30_000), "it reads on, and keeps nothing");
    let (_, replies) = send(&mut second, b"\r\n.\r\nMAIL FROM:<> SIZE=40000\r\n");
    assert_eq!(replies.matches("452 4.3.1").count(), 2, "{replies}");

    let (step, _) = send(&mut first, b"\r\n.\r\n");
    assert!(matches!(step, Step::Message(_)) && budget.free() < 60_000, "until it is stored");
    first.answer_message(vec![Ok("Stored".to_owned())]);
    assert_eq!(budget.free(), 60_000);
    send(&mut second, envelope);
    send(&mut second, &vec![b'x'; 30_000]);
    assert!(budget.free() < 60_000);
    drop(second);
    assert_eq!(budget.free(), 60_000, "a client that goes away gives it back");
}

#[test]
fn small_messages_take_little_memory() {
    let settings = settings();
    let mut session = session(settings.clone(), Protocol::Smtp);
    send(&mut session, b"MAIL FROM:<> SIZE=90000\r\nRCPT TO:<a@b.example>\r\nDATA\r\n");
    send(&mut session, b"hi\r\n");
    assert_eq!(settings.budget.free(), 10 * MAX_MESSAGE - 8192);
}

/// The replies to a message that is answered so.
fn answered(protocol: Protocol, answers: Vec<Result<String, Reply>>) -> (Vec<u16>, bool) {
    let mut session = session(settings(), protocol);
    send(&mut session, b"MAIL FROM:<>\r\nRCPT TO:<a@b.example>\r\nRCPT TO:<a@b.example>\r\nDATA\r\n");
    send(&mut session, b"hi\r\n.\r\n");
    session.answer_message(answers);
    let (step, replies) = send(&mut session, b"");
    let lines: Vec<String> = replies.lines().map(str::to_owned).collect();
    (final_codes(&lines), matches!(step, Step::Close { .. }))
}

#[test]
fn nothing_is_acknowledged_that_somebody_still_lacks() {
    let ok = || Ok("Stored".to_owned());
    let later = || Err(Reply::new(451, "4.3.0", "Later"));
    let never = || Err(Reply::new(550, "5.7.1", "Never"));
    let nonsense = || Err(Reply::new(250, "2.0.0", "Fine"));
    let smtp = |answers| answered(Protocol::Smtp, answers).0;
    assert_eq!(smtp(vec![ok(), ok()]), [250]);
    assert_eq!(smtp(vec![ok(), never()]), [250]);
    assert_eq!(smtp(vec![never(), ok()]), [250]);
    assert_eq!(smtp(vec![ok(), later()]), [451]);
    assert_eq!(smtp(vec![never(), later()]), [451]);
    assert_eq!(smtp(vec![never(), never()]), [550]);
    assert_eq!(smtp(vec![ok()]), [451], "no answer is not yes");
    assert_eq!(smtp(vec![]), [451]);
    assert_eq!(smtp(vec![ok(), nonsense()]), [451]);
    assert_eq!(smtp(vec![ok(), ok(), never()]), [250]);
    let lmtp = |answers| answered(Protocol::Lmtp, answers).0;
    assert_eq!(lmtp(vec![ok(), never()]), [250, 550]);
    assert_eq!(lmtp(vec![later(), ok(), ok()]), [451, 250]);
    assert_eq!(lmtp(vec![never()]), [550, 451]);
    let closing = || Err(Reply::new(421, "4.3.2", "Stopping"));
    assert_eq!(answered(Protocol::Smtp, vec![closing(), closing()]), (vec![421], true));
}

#[test]
fn lmtp_tells_every_recipient_that_a_message_is_too_large() {
    let mut session = session(settings(), Protocol::Lmtp);
    send(&mut session, b"MAIL FROM:<>\r\nRCPT TO:<a@b.example>\r\nRCPT TO:<a@b.example>\r\nDATA\r\n");
    let (_, replies) = send(&mut session, format!("{}\r\n.\r\n", "x".repeat(MAX_MESSAGE)).as_bytes());
    assert_eq!(replies.matches("552 5.3.4").count(), 2);
}

#[test]
fn texts_of_others_cannot_break_out_of_their_line() {
    let mut session = session(settings(), Protocol::Smtp);
    session.input().extend_from_slice(b"MAIL FROM:<>\r\n");
    assert!(matches!(session.step(), Step::Mail(None)));
    let text = format!("a\r\n250 b\u{7f}é{}", "x".repeat(1000));
    session.answer_mail(Err(Reply::new(550, "5.7.1", "").with_text(text)));
    let line = session.output();
    assert!(line.starts_with(b"550 5.7.1 a??250 b???x") && line.len() <= 512);
    assert_eq!(String::from_utf8_lossy(line).lines().count(), 1);
}
