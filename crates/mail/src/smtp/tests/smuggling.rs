//! Every way to make a message seem to end where it does not.

use super::*;

/// What is not the end of a message, and must end the session instead.
const FALSE_ENDS: [&str; 19] = [
    "\n.\n",
    "\r.\r",
    "\n.\r",
    "\r.\n",
    "\r\n.\n",
    "\r\n.\r",
    "\n.\r\n",
    "\r.\r\n",
    "\r\n.\r\r\n",
    "\r\n.\n\r\n",
    "\r\r\n.\r\n",
    "\n\r\n.\r\n",
    "\r\n\r.\r\n",
    "\r\n.\0\n",
    "\0\n.\r\n",
    "\n\n.\r\n",
    "\r\n..\n",
    "\r\n.\r.\r\n",
    "\r\n.\n.\r\n",
];

/// What is not the end of a message either, but may stand in one: bytes between the line end and the dot.
const HARMLESS: [&str; 6] =
    ["\r\n\0.\r\n", "\r\n.\0\r\n", "\r\n. \r\n", "\r\n .\r\n", "\r\n..\r\n", "\r\n\u{85}.\u{85}\r\n"];

const SMUGGLED: &str = "MAIL FROM:<admin@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\nsmuggled\r\n.\r\n";

/// Plays the content cut in two at every place.
fn for_every_cut(content: &str, check: impl Fn(&DrivenSession, usize)) {
    for at in 0..=content.len() {
        let (head, tail) = content.as_bytes().split_at(at);
        let opening = with_data(&[]);
        let pieces = opening.iter().map(|piece| piece.as_bytes()).chain([head, tail]);
        check(&drive_session(&settings(), Protocol::Smtp, pieces), at);
    }
}

/// rules: RECV-9
#[test]
fn a_bare_line_end_in_content_ends_the_session() {
    for end in FALSE_ENDS {
        let content = format!("Subject: x\r\n\r\ntext{end}{SMUGGLED}");
        for_every_cut(&content, |driven, at| {
            assert_eq!(driven.messages, [], "{end:?} cut at {at}");
            assert!(driven.closed, "{end:?} cut at {at}");
            let lines = lines(&driven.replies);
            assert!(lines.last().unwrap().starts_with("550 5.6.0 "), "{end:?} cut at {at}: {lines:?}");
            assert_eq!(final_codes(&lines), [250, 250, 250, 354, 550], "{end:?} cut at {at}");
        });
    }
}

/// rules: RECV-9
#[test]
fn what_only_looks_like_an_end_is_content() {
    for end in HARMLESS {
        let content = format!("text{end}{SMUGGLED}");
        let expected = format!("text{end}{SMUGGLED}").replace("\r\n.", "\r\n");
        let expected = expected.strip_suffix("\r\n").unwrap();
        for_every_cut(&content, |driven, at| {
            assert_eq!(messages(driven), [expected], "{end:?} cut at {at}");
            assert!(!driven.closed, "{end:?} cut at {at}");
        });
    }
}

/// rules: RECV-9
#[test]
fn only_crlf_dot_crlf_ends_a_message() {
    for_every_cut("one\r\n.\r\n", |driven, at| assert_eq!(messages(driven), ["one\r\n"], "cut at {at}"));
    for_every_cut(".\r\n", |driven, at| assert_eq!(messages(driven), [""], "cut at {at}"));
    for_every_cut("..\r\n.\r\n", |driven, at| assert_eq!(messages(driven), [".\r\n"], "cut at {at}"));
    for_every_cut("\r\n.\r\nQUIT\r\n", |driven, at| {
        assert_eq!(messages(driven), ["\r\n"], "cut at {at}");
        assert!(driven.closed, "cut at {at}");
    });
}

/// rules: RECV-9
#[test]
fn a_bare_line_end_in_a_command_ends_the_session() {
    for line in [
        "NOOP\n",
        "NOOP\r",
        "NOOP\rNOOP\r\n",
        "NO\nOP\r\n",
        "\n",
        "NOOP\n\r\n",
        "MAIL FROM:<a\r@b.example>\r\n",
        "\r\r\n",
    ] {
        for cut in 0..=line.len() {
            let (head, tail) = line.split_at(cut);
            let driven = driven(&["EHLO me\r\n", head, tail, "NOOP\r\n", "NOOP\r\n"]);
            let replies = lines(&driven.replies);
            assert_eq!(final_codes(&replies), [250, 550], "{line:?} cut at {cut}");
            assert!(driven.closed);
        }
    }
    assert_eq!(codes(&["EHLO me\n"]), [550]);
}

#[test]
fn control_characters_in_commands_are_refused() {
    for line in [
        "NOOP\0\r\n",
        "\0NOOP\r\n",
        "MAIL FROM:<a\0@b.example>\r\n",
        "NOOP \t\r\n",
        "NOOP \u{1b}[2J\r\n",
        "NOOP \u{85}\r\n",
    ] {
        assert_eq!(codes(&["EHLO me\r\n", line, "NOOP\r\n"]), [250, 500, 250], "{line:?}");
    }
    let driven = drive_session(&settings(), Protocol::Smtp, [&b"EHLO me\r\n"[..], b"NOOP \xff\r\n"]);
    assert!(driven.replies.ends_with(b"500 5.5.2 A command must be text without control characters\r\n"));
}

/// rules: RECV-9
#[test]
fn eight_bit_content_arrives_unchanged() {
    let content: Vec<u8> = (0..=255).filter(|byte| !b"\r\n".contains(byte)).chain(*b"\r\n").collect();
    let opening = with_data(&[]);
    let pieces = opening.iter().map(|piece| piece.as_bytes()).chain([&content[..], b".\r\n"]);
    let driven = drive_session(&settings(), Protocol::Smtp, pieces);
    assert_eq!(messages(&driven), [Bytes::from(content)]);
}
