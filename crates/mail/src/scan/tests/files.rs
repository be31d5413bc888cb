//! Files by their names and by what they really are.

use super::pack::{item, ole, zip};
use super::{Status, kinds, scan_file, scan_text, test_virus, with_file};

#[test]
fn harmful_files() {
    let pe = b"MZ\x90\0\x03\0\0\0".repeat(16);
    let hidden_pdf = [&b"%PDF-1.7\n1 0 obj <</S /J#61vaScript /JS (x)>>"[..]].concat();
    for (name, bytes, kind) in [
        ("tool.exe", &b"x"[..], "executable"),
        ("photo.jpg", &pe, "executable"),
        ("library", b"\x7fELF\x02\x01", "executable"),
        ("x.bin", b"\xcf\xfa\xed\xfe\x07", "executable"),
        ("A.class", b"\xca\xfe\xba\xbe\0\0", "executable"),
        ("short.txt", b"\x4c\x00\x00\x00\x01\x14\x02\x00", "executable"),
        ("a.js", b"1", "script"),
        ("a.VBS", b"1", "script"),
        ("a.ps1", b"1", "script"),
        ("a.bat", b"1", "script"),
        ("a.hta", b"1", "script"),
        ("readme", b"#!/bin/sh\n", "script"),
        ("invoice.pdf.exe", b"x", "double_extension"),
        ("invoice.pdf          .scr", b"x", "double_extension"),
        ("invoice.pdf.exe. ", b"x", "double_extension"),
        ("inv\u{202e}fdp.exe", b"x", "double_extension"),
        ("book.xlsm", b"x", "macro_document"),
        ("old.doc", &ole("_VBA_PROJECT"), "macro_document"),
        ("old.xls", &ole("VBA"), "macro_document"),
        (
            "new.docx",
            &zip(&[item("[Content_Types].xml", "<x/>"), item("word/vbaProject.bin", "x")]),
            "macro_document",
        ),
        ("locked.xlsx", &ole("EncryptedPackage"), "encrypted_archive"),
        ("page.html", b"<p onclick='x()'>", "active_content"),
        ("page.html", b"<script>1</script>", "active_content"),
        ("page.dat", b"<!DOCTYPE html><script>1</script>", "active_content"),
        ("a.svg", b"<svg xmlns='x'><script>1</script></svg>", "active_content"),
        ("a.svg", b"<?xml version='1.0'?>\n<svg onload='x()'/>", "active_content"),
        ("a.svg", b"<svg><a xlink:href=' java script:x'/></svg>", "active_content"),
        ("a.pdf", b"%PDF-1.7\n<</S /JavaScript>>", "active_pdf"),
        ("a.pdf", b"%PDF-1.7\n<</S /Launch /F (x)>>", "active_pdf"),
        ("a.pdf", &hidden_pdf, "active_pdf"),
        ("test.com", &test_virus(), "test_virus"),
        ("test.txt", &test_virus(), "test_virus"),
    ] {
        let verdict = scan_file(name, bytes);
        // rules: SCAN-3
        assert!(kinds(&verdict).contains(&kind), "{name}: {:?}", verdict.threats);
        assert_eq!(verdict.status, Status::Flagged, "{name}");
    }
}

#[test]
fn names_that_readers_see_differently() {
    for parameters in [
        "filename=a.png; filename=a.js",
        "filename='a.js'",
        "filename=a;.js",
        "filename=\"a\".js",
        "filename=a.j()s",
        "filename=a.png; filename*=''a.%6As",
        "filename*1=js; filename*0=a.",
        "filename=\"=?utf-8?b?YS5qcw==?=\"",
    ] {
        let mail = with_file("x", b"1").replace("filename=\"x\"", parameters);
        let verdict = scan_text(&mail);
        assert!(
            kinds(&verdict).iter().any(|kind| matches!(*kind, "script" | "double_extension")),
            "{parameters}: {verdict:?}"
        );
    }
    let other = with_file("a.png", b"1").replace("octet-stream", "octet-stream; name=a.js");
    assert_eq!(kinds(&scan_text(&other)), ["script"]);
}

#[test]
fn harmless_files() {
    for (name, bytes) in [
        ("report.pdf", &b"%PDF-1.7\n<</Type /Catalog /JSomething 1>>"[..]),
        ("photo.jpg", b"\xff\xd8\xff\xe0"),
        ("notes.txt", b"MZ is how some text begins"),
        ("data.json", b"{}"),
        (
            "new.docx",
            &zip(&[
                item("[Content_Types].xml", "<x/>"),
                item("word/document.xml", "<x/>"),
                item("word/embeddings/a.xlsx", zip(&[item("[Content_Types].xml", "")])),
            ]),
        ),
        ("old.doc", &ole("WordDocument")),
        ("page.html", b"<html><p style='x'>hello</p><a href='https://example.com'>on=1</a></html>"),
        ("a.svg", b"<svg><path d='M0 0'/></svg>"),
        ("a.zip", &zip(&[item("a.txt", "hello")])),
        ("v1.2.release.notes.txt", b"x"),
        ("meeting.ics", b"BEGIN:VCALENDAR"),
    ] {
        let verdict = scan_file(name, bytes);
        assert_eq!((verdict.status, kinds(&verdict)), (Status::Clean, vec![]), "{name}");
    }
}

#[test]
fn the_test_file_in_every_wrapping() {
    let virus = test_virus();
    let text = String::from_utf8(virus.clone()).unwrap();
    let base64 = super::pack::base64(&virus);
    let attached = with_file("inner.bin", &virus);
    let broken = base64.replace('\n', "!\n");
    for (what, mail) in [
        ("as text", format!("Subject: x\n\n{text}\n")),
        ("as base64 text", format!("Content-Transfer-Encoding: base64\n\n{base64}\n")),
        (
            "quoted-printable",
            format!("Content-Transfer-Encoding: quoted-printable\n\n{}\n", text.replace("$E", "=24E")),
        ),
        ("mis-typed", with_file("a.png", &virus).replace("application/octet-stream", "image/png")),
        ("base64 with garbage", with_file("a.txt", &virus).replace(&base64, &broken)),
        (
            "base64 without its header",
            with_file("a.txt", &virus).replace("Content-Transfer-Encoding: base64\n", ""),
        ),
        (
            "in an attached message",
            format!(
                "Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: message/rfc822\n\n{attached}\n--o--\n"
            ),
        ),
        ("in an encoded message", with_file("mail.eml", attached.as_bytes())),
        (
            "in the preamble",
            format!("Content-Type: multipart/mixed; boundary=b\n\n{text}\n--b\n\nx\n--b--\n"),
        ),
    ] {
        let verdict = scan_text(&mail);
        // rules: SCAN-3
        assert!(kinds(&verdict).contains(&"test_virus"), "{what}: {verdict:?}");
    }
}

#[test]
fn the_file_is_named_that_holds_the_test_file() {
    let text = String::from_utf8(test_virus()).unwrap();
    let mail = with_file("a.txt", b"").replace("Content-Transfer-Encoding: base64\n\n", &format!("\n{text}"));
    // rules: SCAN-8
    let threats = scan_text(&mail).threats;
    assert_eq!((threats.len(), threats[0].file_name.as_deref()), (1, Some("a.txt")));
}

#[test]
fn a_message_that_is_not_called_one() {
    let inner = with_file("a.zip", &zip(&[item("x", test_virus())]));
    let outer = format!(
        "Content-Type: multipart/mixed; boundary=outer\n\n--outer\nContent-Type: application/octet-stream; name=mail.eml\n\n\
         {inner}\n--outer--\n"
    );
    // rules: SCAN-3
    assert!(kinds(&scan_text(&outer)).contains(&"test_virus"));
}

#[test]
fn what_cannot_be_looked_into_is_not_clean() {
    for (name, bytes) in [
        ("winmail.dat", &b"\x78\x9f\x3e\x22\0\0"[..]),
        ("a.rar", b"Rar!\x1a\x07\x01\x00\0\0\0\0\x0b\x01"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c\0\x04"),
        ("a.cab", b"MSCF\0\0\0\0"),
        ("a.zip", b"this is no zip"),
        ("a.iso", b"nothing known"),
    ] {
        assert_eq!(scan_file(name, bytes).status, Status::Skipped, "{name}");
    }
    let encrypted =
        "Content-Type: application/pkcs7-mime; name=smime.p7m\nContent-Transfer-Encoding: base64\n\nMIIB\n";
    assert_eq!(scan_text(encrypted).status, Status::Skipped);
}
