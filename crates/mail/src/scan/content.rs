//! The real type of a file, by its bytes, and the files packed in it.
//!
//! Archives and documents are unpacked within a budget; what cannot be inspected is noted.

use memchr::memmem;

use super::archive::{self, Budget, Refusal};
use super::threat::Kind;
use super::verdict::Findings;
use super::{active_content, file_names, ole};

/// The two halves of the EICAR test file; apart, so that this source is not detected as one.
const TEST_VIRUS: [&[u8]; 2] = [b"X5O!P%@AP[4\\PZX54(P^)7CC)7}$", b"EICAR-STANDARD-ANTIVIRUS-TEST-FILE"];

/// The same in base64, for parts that no client decodes.
const TEST_VIRUS_BASE64: [&[u8]; 2] = [b"WDVPIVAlQEFQWzRcUFpYNTQo", b"UF4pN0NDKTd9JEVJQ0FS"];

/// Whether the bytes contain the test file, plain or as base64.
pub(super) fn has_test_virus(bytes: &[u8]) -> bool {
    [TEST_VIRUS, TEST_VIRUS_BASE64].iter().any(|[first, second]| {
        memmem::find_iter(bytes, first)
            .any(|place| bytes.get(place + first.len()..).is_some_and(|rest| rest.starts_with(second)))
    })
}

/// Whether a name is that of an HTML or SVG file.
pub(super) fn is_page_name(name: &str) -> bool {
    matches!(
        file_names::ending(name).as_str(),
        "html" | "htm" | "xhtml" | "xht" | "shtml" | "svg" | "svgz" | "mht" | "mhtml"
    )
}

/// The format of a file, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileFormat {
    Program,
    Script,
    Zip,
    Gzip,
    Tar,
    /// An archive format that is not supported.
    UnsupportedArchive,
    /// An encrypted rar or 7z archive.
    EncryptedArchive,
    Ole,
    Pdf,
    Page,
    Other,
}

/// How a file is nested.
#[derive(Clone, Copy, Default)]
pub(super) struct Nesting {
    /// Nesting depth.
    depth: usize,
    /// Whether its container is an archive, and not a document.
    in_archive: bool,
}

/// Scans files, and the files packed in them.
pub(super) struct FileScanner<'a> {
    /// The name that threats are listed under.
    pub(super) name: &'a str,
    /// Whether pages in it are shown as the text of a message, which runs no scripts anyway.
    pub(super) is_body: bool,
    pub(super) budget: &'a mut Budget,
    pub(super) findings: &'a mut Findings,
}

impl FileScanner<'_> {
    /// Scans one file.
    pub(super) fn scan(&mut self, bytes: &[u8], name: &str, media_type: &str, nesting: Nesting) {
        if has_test_virus(bytes) {
            self.add(Kind::TestVirus);
        }
        let format_of = format_of(bytes);
        let is_archive = matches!(
            format_of,
            FileFormat::Zip
                | FileFormat::Gzip
                | FileFormat::Tar
                | FileFormat::UnsupportedArchive
                | FileFormat::EncryptedArchive
        );
        if is_archive && nesting.in_archive && !archive::is_document(bytes) {
            self.add(Kind::NestedArchive);
        }
        if is_archive && nesting.depth >= archive::MAX_DEPTH {
            self.findings.incomplete = true;
            return;
        }
        match format_of {
            FileFormat::Program => self.add(Kind::Executable),
            FileFormat::Script => self.add(Kind::Script),
            FileFormat::Zip => self.zip(bytes, nesting),
            FileFormat::Gzip => self.gzip(bytes, name, nesting),
            FileFormat::Tar => self.tar(bytes, nesting),
            FileFormat::UnsupportedArchive => self.findings.incomplete = true,
            FileFormat::EncryptedArchive => self.add(Kind::EncryptedArchive),
            FileFormat::Ole => ole::judge(bytes).into_iter().for_each(|kind| self.add(kind)),
            FileFormat::Pdf if active_content::pdf_runs(bytes) => self.add(Kind::ActivePdf),
            FileFormat::Pdf => {}
            FileFormat::Page | FileFormat::Other => {
                self.page(bytes, name, media_type, format_of == FileFormat::Page);
            }
        }
    }

    fn add(&mut self, kind: Kind) {
        self.findings.add(kind, None, Some(self.name));
    }

    /// Checks HTML for scripts, and notes containers that are not supported.
    fn page(&mut self, bytes: &[u8], name: &str, media_type: &str, looks_like_page: bool) {
        let declared = matches!(media_type, "text/html" | "application/xhtml+xml" | "image/svg+xml");
        let is_page = looks_like_page || declared || is_page_name(name);
        if is_page && !self.is_body {
            if !self.budget.take_page(bytes.len()) {
                self.findings.incomplete = true;
            } else if active_content::page_runs_scripts(bytes) {
                self.add(Kind::ActiveContent);
            }
        }
        let claims_archive = matches!(
            file_names::ending(name).as_str(),
            "zip"
                | "rar"
                | "7z"
                | "gz"
                | "tgz"
                | "tar"
                | "cab"
                | "iso"
                | "img"
                | "xz"
                | "bz2"
                | "zst"
                | "ace"
                | "arj"
                | "lzh"
                | "vhd"
        );
        let is_tnef = bytes.starts_with(b"\x78\x9f\x3e\x22");
        if claims_archive || is_tnef {
            self.findings.incomplete = true;
        }
    }

    fn zip(&mut self, bytes: &[u8], nesting: Nesting) {
        let Ok(entries) = archive::zip_entries(bytes) else {
            self.findings.incomplete = true;
            return;
        };
        let has = |wanted: &dyn Fn(&str) -> bool| {
            entries.iter().any(|entry| wanted(&entry.name.to_ascii_lowercase()))
        };
        let ends = |name: &str, ending: &str| file_names::ending(name) == ending;
        let is_basic =
            |name: &str| name.starts_with("basic/") && ends(name, "xml") && !name.contains("script-l");
        if has(&|name| name.ends_with("vbaproject.bin")) || has(&is_basic) {
            self.add(Kind::MacroDocument);
        }
        let is_java = has(&|name| name == "meta-inf/manifest.mf") && has(&|name| ends(name, "class"));
        if is_java || has(&|name| name == "androidmanifest.xml") {
            self.add(Kind::Executable);
        }
        // A file embedded in a document is part of it, not an archive in an archive.
        let nesting = Nesting { depth: nesting.depth + 1, in_archive: !archive::is_document(bytes) };
        for entry in &entries {
            match archive::unpack(bytes, entry, self.budget) {
                Ok(content) => self.entry(&content, &entry.name, nesting),
                Err(Refusal::Encrypted) => self.add(Kind::EncryptedArchive),
                Err(Refusal::Unreadable) => self.findings.incomplete = true,
                Err(Refusal::TooMuch) => {
                    self.findings.incomplete = true;
                    return;
                }
            }
        }
    }

    fn gzip(&mut self, bytes: &[u8], name: &str, nesting: Nesting) {
        match archive::gunzip(bytes, self.budget) {
            Ok(content) => {
                let inner = name.strip_suffix(".gz").unwrap_or(name);
                // A compressed tar counts as one archive.
                let in_archive = nesting.in_archive || format_of(&content) != FileFormat::Tar;
                self.entry(&content, inner, Nesting { depth: nesting.depth + 1, in_archive });
            }
            Err(_) => self.findings.incomplete = true,
        }
    }

    fn tar(&mut self, bytes: &[u8], nesting: Nesting) {
        let mut is_whole = true;
        for entry in archive::tar_entries(bytes, self.budget, &mut is_whole) {
            self.entry(entry.1, &entry.0, Nesting { depth: nesting.depth + 1, in_archive: true });
        }
        self.findings.incomplete |= !is_whole;
    }

    /// Scans a file in an archive.
    fn entry(&mut self, content: &[u8], name: &str, nesting: Nesting) {
        if let Some(kind) = file_names::judge(name) {
            self.add(kind);
        }
        self.scan(content, name, "", nesting);
    }
}

/// Detects the format of a file by its first bytes.
fn format_of(bytes: &[u8]) -> FileFormat {
    let begins = |magics: &[&[u8]]| magics.iter().any(|magic| bytes.starts_with(magic));
    if is_program(bytes) {
        return FileFormat::Program;
    }
    if begins(&[b"PK\x03\x04", b"PK\x05\x06"]) {
        return FileFormat::Zip;
    }
    if begins(&[b"\x1f\x8b"]) {
        return FileFormat::Gzip;
    }
    if begins(&[ole::MAGIC]) {
        return FileFormat::Ole;
    }
    if begins(&[b"Rar!\x1a\x07", b"7z\xbc\xaf\x27\x1c"]) {
        return if archive::is_locked(bytes) {
            FileFormat::EncryptedArchive
        } else {
            FileFormat::UnsupportedArchive
        };
    }
    if begins(&[
        b"MSCF",
        b"\xfd7zXZ\x00",
        b"BZh",
        b"\x28\xb5\x2f\xfd",
        b"**ACE**",
        b"\x60\xea",
        b"PK\x07\x08",
        b"conectix",
        b"vhdxfile",
        b"xar!",
    ]) || bytes.get(0x8001..0x8006) == Some(b"CD001")
    {
        return FileFormat::UnsupportedArchive;
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return FileFormat::Tar;
    }
    if begins(&[b"#!"]) {
        return FileFormat::Script;
    }
    let head = bytes.get(..bytes.len().min(1024)).unwrap_or_default();
    if memmem::find(head, b"%PDF-").is_some() {
        return FileFormat::Pdf;
    }
    let start = String::from_utf8_lossy(head)
        .trim_start_matches(['\u{feff}', ' ', '\r', '\n', '\t'])
        .to_ascii_lowercase();
    let is_page = ["<!doctype html", "<html", "<svg", "<script", "<body", "<head"]
        .iter()
        .any(|tag| start.starts_with(tag))
        || (start.starts_with("<?xml") && (start.contains("<svg") || start.contains("<html")));
    if is_page { FileFormat::Page } else { FileFormat::Other }
}

/// Whether the bytes are a program, a library, a class or a shortcut.
fn is_program(bytes: &[u8]) -> bool {
    const MAGICS: [&[u8]; 10] = [
        b"\x7fELF",
        b"\xfe\xed\xfa\xce",
        b"\xfe\xed\xfa\xcf",
        b"\xce\xfa\xed\xfe",
        b"\xcf\xfa\xed\xfe",
        b"\xca\xfe\xba\xbe",
        b"dex\n",
        b"\x4c\x00\x00\x00\x01\x14\x02\x00",
        b"\x00asm",
        b"!<arch>\n",
    ];
    if MAGICS.iter().any(|magic| bytes.starts_with(magic)) {
        return true;
    }
    if !bytes.starts_with(b"MZ") && !bytes.starts_with(b"ZM") {
        return false;
    }
    // Text may begin with these two characters; a program has binary fields after them.
    bytes.get(2..64).is_some_and(|header| header.contains(&0))
}
