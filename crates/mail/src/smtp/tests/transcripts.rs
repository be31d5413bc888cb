//! Whole conversations, word by word.

use super::*;

#[test]
fn a_mail_comes_in_by_esmtp() {
    let driven = transcript(
        Protocol::Smtp,
        "S: 220 mx.test ESMTP
         C: EHLO client.example
         S: 250-mx.test
         S: 250-PIPELINING
         S: 250-SIZE 100000
         S: 250-STARTTLS
         S: 250-ENHANCEDSTATUSCODES
         S: 250-8BITMIME
         S: 250-SMTPUTF8
         S: 250-CHUNKING
         S: 250 BINARYMIME
         C: MAIL FROM:<Ann@Example.com> SIZE=20 BODY=8BITMIME
         S: 250 2.1.0 Ok
         C: RCPT TO:<Bob+news@agents.example>
         S: 250 2.1.5 Ok
         C: RCPT TO:<POSTmaster>
         S: 250 2.1.5 Ok
         C: DATA
         S: 354 End data with <CR><LF>.<CR><LF>
         C: Subject: hello
         C: 
         C: ..dots.
         C: .
         S: 250 2.0.0 Taken
         C: QUIT
         S: 221 2.0.0 Bye",
    );
    let (from, recipients, message) = &driven.messages[0];
    assert_eq!(from.to_string(), "Ann@example.com");
    let recipients: Vec<String> = recipients.iter().map(ToString::to_string).collect();
    assert_eq!(recipients, ["Bob+news@agents.example", "postmaster"]);
    assert_eq!(&message[..], b"Subject: hello\r\n\r\n.dots.\r\n");
    assert!(driven.closed);
}

#[test]
fn a_mail_comes_in_by_plain_smtp() {
    let driven = transcript(
        Protocol::Smtp,
        "S: 220 mx.test ESMTP
         C: helo [192.0.2.1]
         S: 250 mx.test
         C: mail from: <>
         S: 250 2.1.0 Ok
         C: rcpt to: <bob@agents.example>
         S: 250 2.1.5 Ok
         C: data
         S: 354 End data with <CR><LF>.<CR><LF>
         C: .
         S: 250 2.0.0 Taken
         C: quit
         S: 221 2.0.0 Bye",
    );
    assert_eq!(driven.messages[0].0, ReversePath::Null);
    assert_eq!(driven.messages[0].2, "");
}

#[test]
fn several_mails_are_pipelined() {
    let driven = transcript(
        Protocol::Smtp,
        "S: 220 mx.test ESMTP
         C: EHLO client.example
         S: 250-mx.test
         S: 250-PIPELINING
         S: 250-SIZE 100000
         S: 250-STARTTLS
         S: 250-ENHANCEDSTATUSCODES
         S: 250-8BITMIME
         S: 250-SMTPUTF8
         S: 250-CHUNKING
         S: 250 BINARYMIME
         C: MAIL FROM:<a@b.example>
         C: RCPT TO:<c@d.example>
         C: RCPT TO:<e%f@d.example>
         C: DATA
         S: 250 2.1.0 Ok
         S: 250 2.1.5 Ok
         S: 550 5.7.1 We do not relay
         S: 354 End data with <CR><LF>.<CR><LF>
         C: one
         C: .
         C: RSET
         C: MAIL FROM:<a@b.example>
         C: RCPT TO:<c@d.example>
         C: BDAT 7 LAST
         C: 12345
         C: MAIL FROM:<>
         C: RCPT TO:<c@d.example>
         C: DATA
         S: 250 2.0.0 Taken
         S: 250 2.0.0 Ok
         S: 250 2.1.0 Ok
         S: 250 2.1.5 Ok
         S: 250 2.0.0 Taken
         S: 250 2.1.0 Ok
         S: 250 2.1.5 Ok
         S: 354 End data with <CR><LF>.<CR><LF>
         C: three
         C: .
         C: QUIT
         S: 250 2.0.0 Taken
         S: 221 2.0.0 Bye",
    );
    assert_eq!(messages(&driven), ["one\r\n", "12345\r\n", "three\r\n"]);
}

/// rules: RECV-1
#[test]
fn lmtp_answers_for_each_recipient() {
    let driven = transcript(
        Protocol::Lmtp,
        "S: 220 mx.test LMTP
         C: EHLO me
         S: 500 5.5.1 Command not recognised
         C: LHLO me
         S: 250-mx.test
         S: 250-PIPELINING
         S: 250-SIZE 100000
         S: 250-STARTTLS
         S: 250-ENHANCEDSTATUSCODES
         S: 250-8BITMIME
         S: 250-SMTPUTF8
         S: 250-CHUNKING
         S: 250 BINARYMIME
         C: MAIL FROM:<a@b.example>
         C: DATA
         S: 250 2.1.0 Ok
         S: 503 5.5.1 Give a recipient with RCPT first
         C: RCPT TO:<c@d.example>
         C: RCPT TO:<e@d.example>
         C: DATA
         S: 250 2.1.5 Ok
         S: 250 2.1.5 Ok
         S: 354 End data with <CR><LF>.<CR><LF>
         C: one
         C: .
         S: 250 2.0.0 Taken
         S: 250 2.0.0 Taken
         C: QUIT
         S: 221 2.0.0 Bye",
    );
    assert_eq!(driven.messages.len(), 1);
    assert_eq!(codes(&["LHLO me\r\n"]), [500], "only where it is spoken");
}

/// rules: RECV-11
#[test]
fn small_commands_tell_nothing() {
    let pieces =
        ["EHLO me\r\n", "NOOP\r\nNOOP anything\r\nHELP\r\nVRFY bob\r\nVRFY\r\nEXPN list\r\nRSET\r\nWHAT\r\n"];
    assert_eq!(codes(&pieces), [250, 250, 250, 214, 252, 501, 502, 250, 500]);
}

#[test]
fn the_order_of_commands_is_kept() {
    assert_eq!(codes(&["MAIL FROM:<a@b.example>\r\n"]), [503]);
    assert_eq!(codes(&["EHLO me\r\n", "RCPT TO:<c@d.example>\r\n"]), [250, 503]);
    assert_eq!(codes(&["EHLO me\r\n", "DATA\r\n"]), [250, 503]);
    assert_eq!(codes(&["EHLO me\r\n", "MAIL FROM:<>\r\nMAIL FROM:<>\r\n"]), [250, 250, 503]);
    assert_eq!(codes(&["EHLO me\r\n", "MAIL FROM:<>\r\nDATA\r\n"]), [250, 250, 503]);
    assert_eq!(
        codes(&["EHLO me\r\n", "MAIL FROM:<>\r\nRCPT TO:<a!b@c.example>\r\nDATA\r\n"]),
        [250, 250, 550, 503]
    );
    assert_eq!(codes(&["EHLO me\r\n", "MAIL FROM:<>\r\nRSET\r\nMAIL FROM:<>\r\n"]), [250; 4]);
    assert_eq!(codes(&["EHLO me\r\n", "MAIL FROM:<>\r\n", "EHLO me\r\n", "MAIL FROM:<>\r\n"]), [250; 4]);
    assert_eq!(codes(&["EHLO me\r\n", "MAIL FROM:<>\r\n", "HELO\r\n"]), [250, 250, 501]);
}

#[test]
fn hello_needs_a_harmless_name() {
    let long = format!("EHLO {}\r\n", "a".repeat(256));
    for hello in [
        "EHLO",
        "EHLO \r\n",
        "EHLO a b\r\n",
        "EHLO (a)\r\n",
        "HELO <a>\r\n",
        "EHLO a@b\r\n",
        "EHLO é\r\n",
        &long,
    ] {
        let line = format!("{}\r\n", hello.trim_end());
        assert_eq!(codes(&[&line]), [501], "{hello:?}");
    }
    for hello in ["EHLO [IPv6:2001:db8::1]\r\n", "EHLO my_pc\r\n", "HELO -\r\n"] {
        assert_eq!(codes(&[hello]), [250], "{hello:?}");
    }
}

/// rules: RECV-5
#[test]
fn routing_tricks_get_550() {
    let tricks = [
        "@relay.example:bob@agents.example",
        "@a.example,@b.example:bob@agents.example",
        "bob%victim.example@agents.example",
        "victim.example!bob@agents.example",
        "bob@victim.example@agents.example",
        "\"bob@victim.example\"@agents.example",
        "\"bob\"@agents.example",
        "bob@[127.0.0.1]",
        "bob@[IPv6:::1]",
        "bob@127.0.0.1",
    ];
    for trick in tricks {
        let replies = replies(&["EHLO me\r\n", "MAIL FROM:<>\r\n", &format!("RCPT TO:<{trick}>\r\n")]);
        assert_eq!(replies.last().unwrap(), "550 5.7.1 We do not relay", "{trick}");
    }
}

#[test]
fn malformed_paths_are_refused() {
    for path in
        ["<>", "<bob>", "<bob@>", "<@agents.example>", "<bo b@agents.example>", "<a..b@agents.example>"]
    {
        let codes = codes(&["EHLO me\r\n", "MAIL FROM:<>\r\n", &format!("RCPT TO:{path}\r\n")]);
        assert!([501, 550].contains(codes.last().unwrap()), "{path} {codes:?}");
    }
    for path in [
        "bob@agents.example",
        "<bob@agents.example",
        "bob@agents.example>",
        "<a@b.example>x",
        "",
        "<\">\"",
        "<<a@b.example>>",
    ] {
        assert_eq!(codes(&["EHLO me\r\n", &format!("MAIL FROM:{path}\r\n")]), [250, 501], "{path}");
    }
    for path in [
        "<@a.example:b@c.example>",
        "<a>",
        "<a@>",
        "<@c.example>",
        "<a b@c.example>",
        "<a..b@c.example>",
        "<a@c..example>",
        "<a@[]>",
        "<a@[192.0.2.1>",
        "<(a)@c.example>",
    ] {
        assert_eq!(codes(&["EHLO me\r\n", &format!("MAIL FROM:{path}\r\n")]), [250, 553], "{path}");
    }
    for line in
        ["MAIL", "MAIL FROM", "MAIL TO:<a@b.example>", "RCPT", "RCPT FROM:<a@b.example>", "MAIL FR", "MAIL é"]
    {
        assert_eq!(codes(&["EHLO me\r\n", &format!("{line}\r\n")]), [250, 501], "{line}");
    }
}

/// What others may lawfully send from is taken, as it was given; where mail goes to stays strict.
/// rules: RECV-5
#[test]
fn unusual_senders_are_taken_and_unusual_recipients_are_not() {
    for address in [
        "a%b@c.example",
        "host!user@c.example",
        "\"a\"@b.example",
        "\"a>b\"@c.example",
        "\"a b\\\"c@d\"@e.example",
        "a@[192.0.2.1]",
        "a@[IPv6:2001:db8::1]",
        "a@mail_host.example",
        "bounce+x=y.example@_bounces.example",
    ] {
        let envelope = format!("MAIL FROM:<{address}>\r\nRCPT TO:<bob@agents.example>\r\n");
        let pieces = ["EHLO me\r\n", &envelope, "DATA\r\n", ".\r\n"];
        let driven = drive_session(&settings(), Protocol::Smtp, pieces.map(str::as_bytes));
        let senders: Vec<_> = driven.messages.iter().map(|(from, ..)| from.as_str()).collect();
        assert_eq!(senders, [Some(address)]);
        let codes = codes(&["EHLO me\r\n", "MAIL FROM:<>\r\n", &format!("RCPT TO:<{address}>\r\n")]);
        assert!([501, 550].contains(codes.last().unwrap()), "{address} {codes:?}");
    }
}

#[test]
fn parameters_are_known_or_refused() {
    let answer = |words: &str| codes(&["EHLO me\r\n", &format!("MAIL FROM:<a@b.example> {words}\r\n")])[1];
    for sound in
        ["", "SIZE=0", "size=100000", "BODY=7bit", "BODY=8BITMIME  SIZE=1", "BODY=BINARYMIME SMTPUTF8 "]
    {
        assert_eq!(answer(sound), 250, "{sound}");
    }
    for large in ["SIZE=100001", "SIZE=18446744073709551616", "SIZE=99999999999999999999"] {
        assert_eq!(answer(large), 552, "{large}");
    }
    for broken in [
        "SIZE=",
        "SIZE",
        "SIZE=-1",
        "SIZE=1x",
        "SIZE=1 SIZE=1",
        "BODY=9BIT",
        "BODY",
        "SMTPUTF8=1",
        "SMTPUTF8 SMTPUTF8",
        "SIZE=100000000000000000000",
    ] {
        assert_eq!(answer(broken), 501, "{broken}");
    }
    for unknown in ["AUTH=<>", "RET=FULL", "X"] {
        assert_eq!(answer(unknown), 555, "{unknown}");
    }
    assert_eq!(
        codes(&["EHLO me\r\n", "MAIL FROM:<>\r\nRCPT TO:<c@d.example> NOTIFY=NEVER\r\n"]),
        [250, 250, 555]
    );
}

#[test]
fn internationalised_addresses_need_smtputf8() {
    let ask = |from: &str, words: &str, to: &str| {
        codes(&["EHLO me\r\n", &format!("MAIL FROM:<{from}>{words}\r\nRCPT TO:<{to}>\r\n")])[1..].to_vec()
    };
    assert_eq!(ask("jürgen@b.example", "", "c@d.example"), [553, 503]);
    assert_eq!(ask("a@b.example", "", "c@bücher.example"), [250, 553]);
    assert_eq!(ask("a@b.example", "", "用户@d.example"), [250, 553]);
    assert_eq!(ask("jürgen@b.example", " SMTPUTF8", "用户@bücher.example"), [250, 250]);
    assert_eq!(ask("a@xn--bcher-kva.example", "", "c@d.example"), [250, 250]);
    assert_eq!(
        codes(&["EHLO me\r\n", "MAIL FROM:<> SMTPUTF8\r\nRSET\r\nMAIL FROM:<>\r\nRCPT TO:<ü@d.example>\r\n"]),
        [250, 250, 250, 250, 553],
        "it counts for one message only"
    );
}

/// rules: RECV-10
#[test]
fn tls_forgets_what_was_said_before() {
    let driven = driven(&[
        "EHLO me\r\n",
        "MAIL FROM:<>\r\n",
        "STARTTLS\r\n",
        "MAIL FROM:<>\r\n",
        "EHLO me\r\n",
        "RCPT TO:<a@b.example>\r\n",
        "STARTTLS\r\n",
    ]);
    let lines = lines(&driven.replies);
    assert_eq!(final_codes(&lines), [250, 250, 220, 503, 250, 503, 503]);
    assert_eq!(lines.iter().filter(|line| line.as_str() == "250-STARTTLS").count(), 1, "not offered again");
    assert_eq!(codes(&["STARTTLS\r\n"]), [503]);
    assert_eq!(codes(&["HELO me\r\n", "STARTTLS\r\n"]), [250, 503]);
    let plain = Arc::new(Settings { starttls: false, ..Settings::clone(&settings()) });
    let driven = drive_session(&plain, Protocol::Smtp, [&b"EHLO me\r\n"[..], b"STARTTLS\r\n"]);
    assert!(!String::from_utf8_lossy(&driven.replies).contains("250-STARTTLS"));
    assert!(driven.replies.ends_with(b"502 5.5.1 STARTTLS is not offered\r\n"));
}

/// rules: RECV-10
#[test]
fn what_follows_starttls_in_the_clear_is_dropped() {
    let injected = "STARTTLS\r\nRSET\r\nMAIL FROM:<evil@example.com>\r\n";
    assert_eq!(
        codes(&["EHLO me\r\n", injected, "EHLO me\r\n", "RCPT TO:<a@b.example>\r\n"]),
        [250, 220, 250, 503]
    );
    assert_eq!(
        codes(&["EHLO me\r\n", "STARTTLS\r\nEHLO", " me\r\n"]),
        [250, 220, 500],
        "not even half a command"
    );
}

/// rules: RECV-10
#[test]
fn pipelining_where_it_is_not_allowed_ends_the_session() {
    let out_of_step = [
        &["EHLO me\r\nMAIL FROM:<>\r\n"][..],
        &["EHLO me\r\nN"],
        &["NOOP\r\nNOOP\r\n"],
        &["GET / HTTP/1.1\r\nHost: x\r\n"],
        &["STARTTLS\r\nEHLO me\r\n"],
        &["HELO me\r\n", "MAIL FROM:<>\r\nRCPT TO:<a@b.example>\r\n"],
        &["EHLO me\r\n", "MAIL FROM:<>\r\nRCPT TO:<a@b.example>\r\nDATA\r\nSubject: x\r\n\r\n.\r\n"],
        &["EHLO me\r\n", "NOOP\r\nEHLO me\r\nNOOP\r\n"],
    ];
    for pieces in out_of_step {
        let driven = driven(pieces);
        assert!(driven.closed && driven.messages.is_empty(), "{pieces:?}");
        assert!(lines(&driven.replies).last().unwrap().starts_with("554 5.5.0 "), "{pieces:?}");
    }
    assert_eq!(codes(&["EHLO me\r\n", "NOOP\r\nQUIT\r\nNOOP\r\n"]), [250, 250, 221]);
    assert_eq!(codes(&["QUIT\r\n\r\n"]), [221]);
}

/// rules: RECV-10
#[test]
fn whoever_talks_before_the_greeting_is_turned_away() {
    let address = ([127, 0, 0, 1], 1).into();
    let client = Client::new(address, Protocol::Smtp);
    let mut session: Session<()> = Session::new(settings(), client);
    session.input().extend_from_slice(b"E");
    session.greet();
    assert_eq!(session.output(), b"554 5.5.0 You sent before our greeting\r\n");
    assert!(matches!(session.step(), Step::Close { .. }));
}

#[test]
fn browsers_are_turned_away() {
    for line in ["GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\n", "CONNECT a:25 HTTP/1.1\r\n"] {
        let driven = driven(&["EHLO me\r\n", line]);
        assert!(driven.closed);
        assert_eq!(final_codes(&lines(&driven.replies)), [250, 554]);
    }
}
