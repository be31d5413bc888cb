//! BDAT: chunks whose length is known, and everything that can be wrong with them.

use super::*;

fn with_chunks<'a>(chunks: &[&'a str]) -> Vec<&'a str> {
    let mut pieces: Vec<&str> = ENVELOPE.to_vec();
    pieces.extend(chunks);
    pieces
}

/// Codes of the replies that follow the envelope.
fn chunk_codes(chunks: &[&str]) -> Vec<u16> {
    codes(&with_chunks(chunks)).split_off(3)
}

#[test]
fn chunks_make_one_message_byte_for_byte() {
    let driven =
        driven(&with_chunks(&["BDAT 5\r\na\r\n.\r", "BDAT 3\r\n\n..", "BDAT 2 last\r\n\r\n", "QUIT\r\n"]));
    assert_eq!(messages(&driven), ["a\r\n.\r\n..\r\n"], "dots mean nothing here");
    assert_eq!(final_codes(&lines(&driven.replies)), [250, 250, 250, 250, 250, 250, 221]);
}

#[test]
fn a_chunk_may_be_empty() {
    assert_eq!(messages(&driven(&with_chunks(&["BDAT 0 LAST\r\n"]))), [""]);
    assert_eq!(messages(&driven(&with_chunks(&["BDAT 0\r\n", "BDAT 2\r\nhi", "BDAT 0 LAST\r\n"]))), ["hi"]);
}

#[test]
fn what_looks_like_a_command_in_a_chunk_is_content() {
    let driven = driven(&with_chunks(&["BDAT 6 LAST\r\nQUIT\r\nNOOP\r\n"]));
    assert_eq!(messages(&driven), ["QUIT\r\n"]);
    assert_eq!(final_codes(&lines(&driven.replies)), [250, 250, 250, 250, 250]);
}

#[test]
fn data_and_bdat_do_not_mix() {
    assert_eq!(chunk_codes(&["BDAT 2\r\nhi", "DATA\r\n", "BDAT 0 LAST\r\n"]), [250, 503, 250]);
    assert_eq!(
        chunk_codes(&["BDAT 2\r\nhi", "MAIL FROM:<>\r\n", "RCPT TO:<e@f.example>\r\n"]),
        [250, 503, 503]
    );
    assert_eq!(chunk_codes(&["DATA\r\n", "hi\r\n.\r\n", "BDAT 2 LAST\r\nhi"]), [354, 250, 503]);
    assert_eq!(chunk_codes(&["DATA\r\n", "BDAT 2 LAST\r\nhi\r\n.\r\n"]), [354, 250], "it is content");
    let driven = driven(&with_chunks(&[
        "BDAT 2\r\nhi",
        "RSET\r\n",
        "MAIL FROM:<>\r\nRCPT TO:<c@d.example>\r\nBDAT 2 LAST\r\nho",
    ]));
    assert_eq!(messages(&driven), ["ho"]);
}

#[test]
fn a_chunk_that_nobody_expects_is_read_and_refused() {
    assert_eq!(codes(&["EHLO me\r\n", "BDAT 6 LAST\r\nQUIT\r\nNOOP\r\n"]), [250, 503, 250]);
    assert_eq!(codes(&["EHLO me\r\n", "MAIL FROM:<>\r\nBDAT 6\r\nQUIT\r\nNOOP\r\n"]), [250, 250, 503, 250]);
}

/// rules: RECV-9
#[test]
fn a_malformed_chunk_ends_the_session() {
    for words in [
        "",
        " ",
        " x",
        " -1",
        " +1",
        " 1x",
        " 1 FIRST",
        " 1 LAST LAST",
        " 0x10",
        " 1,5",
        " 100000000000000000000",
        " ١",
    ] {
        let driven = driven(&with_chunks(&[&format!("BDAT{words}\r\nQUIT\r\n")]));
        assert!(driven.closed && driven.messages.is_empty(), "{words:?}");
        assert_eq!(final_codes(&lines(&driven.replies)), [250, 250, 250, 501], "{words:?}");
    }
}

#[test]
fn a_chunk_that_is_too_large_is_refused() {
    let large = format!("BDAT 100001 LAST\r\n{}", "x".repeat(100_001));
    assert_eq!(chunk_codes(&[&large, "NOOP\r\n"]), [552, 250]);
    for size in ["200002", "4294967296", "18446744073709551615", "99999999999999999999"] {
        let announced = format!("BDAT {size} LAST\r\nhi");
        let driven = driven(&with_chunks(&[&announced]));
        assert!(driven.closed, "{size}");
        assert_eq!(final_codes(&lines(&driven.replies)), [250, 250, 250, 552], "{size}");
        let stray = drive_session(&settings(), Protocol::Smtp, [&b"EHLO me\r\n"[..], announced.as_bytes()]);
        assert!(stray.closed, "{size}");
    }
}

#[test]
fn chunks_that_are_too_large_together_are_refused_to_the_end() {
    let half = format!("BDAT 60000\r\n{}", "x".repeat(60_000));
    assert_eq!(chunk_codes(&[&half, &half, "BDAT 2 LAST\r\nhi", "NOOP\r\n"]), [250, 552, 552, 250]);
    let driven = driven(&with_chunks(&[&half, &half, &half, &half]));
    assert!(driven.closed, "it does not go on for ever");
}

#[test]
fn a_wrong_length_is_not_guessed_at() {
    // Too short: the rest of the content is no command.
    assert_eq!(chunk_codes(&["BDAT 2 LAST\r\nhi there\r\n"]), [250, 500]);
    // Too long: what follows belongs to the chunk.
    let driven = driven(&with_chunks(&["BDAT 8 LAST\r\nhi", "QUIT\r\n"]));
    assert_eq!(messages(&driven), ["hiQUIT\r\n"]);
}

/// rules: RECV-9
#[test]
fn bare_line_ends_need_binarymime() {
    for content in ["a\nb", "a\rb", "abc\r", "\n.\n"] {
        let chunk = format!("BDAT {} LAST\r\n{content}", content.len());
        let text = driven(&with_chunks(&[&chunk]));
        assert!(text.closed && text.messages.is_empty(), "{content:?}");
        let binary = ["EHLO me\r\n", "MAIL FROM:<> BODY=BINARYMIME\r\nRCPT TO:<c@d.example>\r\n", &chunk];
        assert_eq!(messages(&driven(&binary)), [content.to_owned()], "{content:?}");
    }
    let across = driven(&with_chunks(&["BDAT 2\r\na\r", "BDAT 1 LAST\r\nb"]));
    assert!(across.closed && across.messages.is_empty());
    let data = ["EHLO me\r\n", "MAIL FROM:<> BODY=BINARYMIME\r\nRCPT TO:<c@d.example>\r\n", "DATA\r\n"];
    assert_eq!(codes(&data), [250, 250, 250, 503]);
}
