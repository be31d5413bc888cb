//! Archives: what is in them, and those that are made to break scanners.

use super::pack::{Item, gzip, item, tar, zip};
use super::{Status, kinds, scan_file, test_virus};

#[test]
fn harm_in_archives() {
    let virus = test_virus();
    let inner = zip(&[item("eicar.txt", virus.clone())]);
    let locked = zip(&[Item { name: "a.txt", content: b"x".to_vec(), flags: 1 }]);
    for (name, bytes, kind) in [
        ("a.zip", zip(&[item("eicar.txt", virus.clone())]), "test_virus"),
        ("b.zip", zip(&[item("inner.zip", inner.clone())]), "test_virus"),
        ("c.zip", zip(&[item("inner.zip", inner.clone())]), "nested_archive"),
        ("d.zip", zip(&[item("x.zip", zip(&[item("inner.zip", inner.clone())]))]), "test_virus"),
        ("e.gz", gzip(&virus), "test_virus"),
        ("f.tar", tar("eicar.txt", &virus), "test_virus"),
        ("g.tar.gz", gzip(&tar("eicar.txt", &virus)), "test_virus"),
        ("h.zip", zip(&[item("folder/run.exe", "x")]), "executable"),
        ("i.zip", zip(&[item("invoice.pdf.js", "x")]), "double_extension"),
        ("j.zip", locked, "encrypted_archive"),
        ("k.rar", b"Rar!\x1a\x07\x01\x00\0\0\0\0\x0b\x04".to_vec(), "encrypted_archive"),
        ("l.rar", b"Rar!\x1a\x07\x00\0\0\x73\x80\x00\x0d\0".to_vec(), "encrypted_archive"),
        ("m.7z", b"7z\xbc\xaf\x27\x1c\0\x04....\x06\xf1\x07\x01".to_vec(), "encrypted_archive"),
        ("n.jar.zip", zip(&[item("META-INF/MANIFEST.MF", ""), item("A.class", "x")]), "executable"),
        ("photo.png", zip(&[item("eicar.txt", virus.clone())]), "test_virus"),
        (
            "o.zip",
            zip(&[item("[Content_Types].xml", ""), item("x", zip(&[item("y", virus.clone())]))]),
            "test_virus",
        ),
    ] {
        let verdict = scan_file(name, &bytes);
        // rules: SCAN-3
        assert!(kinds(&verdict).contains(&kind), "{name}: {verdict:?}");
    }
    let clean = scan_file("src.tar.gz", &gzip(&tar("a.txt", b"hello")));
    assert_eq!((clean.status, kinds(&clean)), (Status::Clean, vec![]));
}

#[test]
fn archives_beyond_the_limits() {
    let zeros = vec![0; 4 * 1024 * 1024];
    let names: Vec<String> = (0..1100).map(|number| format!("{number}.txt")).collect();
    let many: Vec<Item<'_>> = names.iter().map(|name| item(name, "x")).collect();
    let mut deep = zip(&[item("a.txt", "hello")]);
    for _ in 0..5 {
        deep = zip(&[item("[Content_Types].xml", ""), item("x.docx", deep)]);
    }
    for (what, name, bytes) in [
        ("a bomb", "a.zip", zip(&[item("zeros", zeros.clone())])),
        ("a compressed bomb", "a.gz", gzip(&zeros)),
        ("too many entries", "a.zip", zip(&many)),
        ("too deep", "a.docx", deep),
    ] {
        // rules: SCAN-5
        assert_eq!(scan_file(name, &bytes).status, Status::Skipped, "{what}");
    }
}

#[test]
fn zips_that_programs_read_differently() {
    let sound = zip(&[item("a.txt", "hello"), item("b.txt", "world")]);
    let flip = |offset: usize, value: u8| {
        let mut bytes = sound.clone();
        bytes[offset] = value;
        bytes
    };
    let central = memchr::memmem::find(&sound, b"PK\x01\x02").unwrap();
    let overlapping = {
        let mut bytes = sound.clone();
        let second = memchr::memmem::rfind(&sound, b"PK\x01\x02").unwrap();
        bytes.copy_within(central + 42..central + 46, second + 42);
        bytes.copy_within(central + 46..central + 51, second + 46);
        bytes
    };
    for (what, bytes) in [
        ("another name in the entry", flip(30, b'x')),
        ("another method in the entry", flip(8, 0)),
        ("another size in the entry", flip(18, 1)),
        ("an unknown method", {
            let mut bytes = flip(8, 12);
            bytes[central + 10] = 12;
            bytes
        }),
        ("entries that share bytes", overlapping),
        ("bytes in front", [b"hidden bytes in front of all of it", sound.as_slice()].concat()),
        ("bytes behind", [sound.as_slice(), b"x"].concat()),
        ("cut off", sound[..sound.len() - 5].to_vec()),
        ("no directory", sound[..central].to_vec()),
    ] {
        let verdict = scan_file("a.zip", &bytes);
        assert_eq!(verdict.status, Status::Skipped, "{what}: {verdict:?}");
    }
    assert_eq!(scan_file("a.zip", &sound).status, Status::Clean);
}

#[test]
fn an_archive_that_holds_itself() {
    // A zip cannot easily be written that unpacks to itself; a chain that is longer than we look does the same.
    let mut bytes = zip(&[item("a.txt", "x")]);
    for _ in 0..50 {
        bytes = zip(&[item("again.zip", bytes)]);
    }
    let verdict = scan_file("a.zip", &bytes);
    assert_eq!(kinds(&verdict), ["nested_archive"]);
}
