//! OLE compound files (old Office documents, Windows installers): only the directory is read.

use super::threat::Kind;

/// How a container begins.
pub(super) const MAGIC: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// The class id of an installer package in the root entry.
const INSTALLER: &[u8] = b"\x84\x10\x0c\x00\x00\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00\x46";

/// The size of a directory entry; sectors are multiples of it.
const ENTRY: usize = 128;

/// What is harmful in a container, by the names in its directory.
pub(super) fn judge(bytes: &[u8]) -> Option<Kind> {
    bytes.chunks_exact(ENTRY).find_map(|entry| {
        let name = entry_name(entry)?;
        match name.as_str() {
            "VBA" | "_VBA_PROJECT" | "_VBA_PROJECT_CUR" | "Macros" => Some(Kind::MacroDocument),
            "EncryptedPackage" | "EncryptionInfo" => Some(Kind::EncryptedArchive),
            "Root Entry" if entry.get(80..96) == Some(INSTALLER) => Some(Kind::Executable),
            _ => None,
        }
    })
}

/// The name of a directory entry, if the bytes are one.
fn entry_name(entry: &[u8]) -> Option<String> {
    let length = usize::from(u16::from_le_bytes([*entry.get(64)?, *entry.get(65)?]));
    let is_entry = matches!(entry.get(66), Some(1 | 2 | 5)) && (4..=64).contains(&length) && length % 2 == 0;
    if !is_entry {
        return None;
    }
    let units = entry.get(..length - 2)?.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    Some(char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect())
}
