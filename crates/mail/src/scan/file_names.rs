//! What the name of a file reveals about it, also when it is disguised.

use super::threat::Kind;

/// Endings of programs.
const PROGRAMS: [&str; 39] = [
    "apk",
    "app",
    "appimage",
    "application",
    "appref-ms",
    "appx",
    "class",
    "com",
    "cpl",
    "deb",
    "dll",
    "dmg",
    "drv",
    "elf",
    "exe",
    "fon",
    "gadget",
    "grp",
    "ipa",
    "jar",
    "jnlp",
    "lnk",
    "msc",
    "msi",
    "msix",
    "msp",
    "mst",
    "ocx",
    "pif",
    "pkg",
    "scf",
    "scr",
    "sys",
    "url",
    "vxd",
    "war",
    "website",
    "xbap",
    "xll",
];

/// Endings of scripts that a click starts.
const SCRIPTS: [&str; 38] = [
    "bash",
    "bat",
    "chm",
    "cmd",
    "command",
    "csh",
    "hlp",
    "hta",
    "inf",
    "ins",
    "iqy",
    "isp",
    "js",
    "jse",
    "ksh",
    "msh",
    "osascript",
    "ps1",
    "ps1xml",
    "ps2",
    "psc1",
    "psd1",
    "psm1",
    "reg",
    "sct",
    "settingcontent-ms",
    "sh",
    "shb",
    "slk",
    "vb",
    "vbe",
    "vbs",
    "ws",
    "wsc",
    "wsf",
    "wsh",
    "zsh",
    "mjs",
];

/// Endings of documents with macros.
const MACROS: [&str; 11] =
    ["docm", "dotm", "xlsm", "xltm", "xlam", "pptm", "potm", "ppam", "ppsm", "sldm", "xla"];

/// Endings that make a name look harmless.
const HARMLESS: [&str; 34] = [
    "pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "rtf", "txt", "csv", "jpg", "jpeg",
    "png", "gif", "bmp", "tif", "tiff", "webp", "svg", "mp3", "mp4", "wav", "avi", "mov", "zip", "rar", "7z",
    "html", "htm", "xml", "eml", "ics",
];

/// The ending of a name in lower case, without the spaces and dots that hide it.
pub(super) fn ending(name: &str) -> String {
    endings(name).next_back().unwrap_or_default()
}

/// The parts of a name behind its first dot.
fn endings(name: &str) -> impl DoubleEndedIterator<Item = String> {
    let trimmed = name.trim_end_matches(|c: char| c.is_whitespace() || c == '.' || c == '\0');
    let parts: Vec<String> = trimmed
        .split('.')
        .skip(1)
        .map(|part| {
            part.chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
                .collect::<String>()
                .to_lowercase()
        })
        .collect();
    parts.into_iter()
}

/// Judges a file by a name that the message gives it.
pub(super) fn judge(name: &str) -> Option<Kind> {
    // Bidirectional overrides reverse the following text, so that `exe` can appear in the middle.
    if name.contains(['\u{202e}', '\u{202d}']) {
        return Some(Kind::DoubleExtension);
    }
    let mut endings = endings(name).rev();
    let last = endings.next()?;
    let kind = if PROGRAMS.contains(&last.as_str()) {
        Kind::Executable
    } else if SCRIPTS.contains(&last.as_str()) {
        Kind::Script
    } else if MACROS.contains(&last.as_str()) {
        return Some(Kind::MacroDocument);
    } else {
        return None;
    };
    let poses = endings.next().is_some_and(|before| HARMLESS.contains(&before.as_str()));
    Some(if poses { Kind::DoubleExtension } else { kind })
}
