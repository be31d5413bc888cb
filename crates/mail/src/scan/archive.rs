//! Archives: small strict readers of zip, gzip and tar that stay within a budget and trust no declared length.
//!
//! A zip has everything twice, in its entries and in its directory, and programs differ in which they use. Here both
//! must agree, and no two entries may share bytes; otherwise its content is ambiguous.

use std::io::Read;
use std::ops::Range;

use flate2::read::{DeflateDecoder, MultiGzDecoder};
use memchr::memmem;

/// Maximum nesting of archives that are unpacked.
pub(super) const MAX_DEPTH: usize = 3;

/// Maximum compression ratio.
const MAX_RATIO: u64 = 100;

/// Content up to this size is exempt from the ratio.
const RATIO_EXEMPT_BYTES: u64 = 1024 * 1024;

/// The unpacking budget of a whole message.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: u64,
    entries: usize,
    page_bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: 100 * 1024 * 1024, entries: 1000, page_bytes: 32 * 1024 * 1024 }
    }
}

impl Budget {
    /// Reserves bytes of text to be read as HTML; false when the budget is exhausted.
    pub(super) fn take_page(&mut self, size: usize) -> bool {
        let left = self.page_bytes.checked_sub(size);
        self.page_bytes = left.unwrap_or(0);
        left.is_some()
    }

    fn take_entry(&mut self) -> Result<(), Refusal> {
        self.entries = self.entries.checked_sub(1).ok_or(Refusal::TooMuch)?;
        Ok(())
    }
}

/// Why something was not unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is encrypted.
    Encrypted,
    /// It is damaged, ambiguous, or uses an unsupported method.
    Unreadable,
    /// It exceeds the budget.
    TooMuch,
}

/// A file in a zip.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    flags: u16,
    method: u16,
    /// The range of the packed bytes.
    data: Range<usize>,
    /// The range with the local header, to check that no two entries overlap.
    whole: Range<usize>,
    size: u64,
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(offset..offset + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

fn offset_at(bytes: &[u8], offset: usize) -> Option<usize> {
    usize::try_from(u32_at(bytes, offset)?).ok()
}

/// The files of a zip, by its directory, checked against their own headers.
pub(super) fn zip_entries(bytes: &[u8]) -> Result<Vec<Entry>, Refusal> {
    let (directory, count) = find_directory(bytes).ok_or(Refusal::Unreadable)?;
    let mut entries = Vec::new();
    let mut position = directory.start;
    for _ in 0..count {
        let (entry, next) = read_entry(bytes, position, &directory).ok_or(Refusal::Unreadable)?;
        entries.push(entry);
        position = next;
    }
    if position != directory.end {
        return Err(Refusal::Unreadable);
    }
    are_contiguous(&entries, directory.start).then_some(entries).ok_or(Refusal::Unreadable)
}

/// Finds the directory by the record at the very end.
fn find_directory(bytes: &[u8]) -> Option<(Range<usize>, usize)> {
    const RECORD: usize = 22;
    let from = bytes.len().saturating_sub(RECORD + usize::from(u16::MAX));
    let end = from + memmem::rfind(bytes.get(from..)?, b"PK\x05\x06")?;
    let comment = usize::from(u16_at(bytes, end + 20)?);
    let is_one_disk = u16_at(bytes, end + 4)? == 0
        && u16_at(bytes, end + 6)? == 0
        && u16_at(bytes, end + 8)? == u16_at(bytes, end + 10)?;
    let start = offset_at(bytes, end + 16)?;
    let size = offset_at(bytes, end + 12)?;
    let fits = end + RECORD + comment == bytes.len() && start.checked_add(size) == Some(end);
    (is_one_disk && fits).then_some((start..end, usize::from(u16_at(bytes, end + 10)?)))
}

/// Reads one entry of the directory and compares it with the entry's own header.
fn read_entry(bytes: &[u8], position: usize, directory: &Range<usize>) -> Option<(Entry, usize)> {
    let central = bytes.get(position..directory.end)?;
    if !central.starts_with(b"PK\x01\x02") {
        return None;
    }
    let (flags, method) = (u16_at(central, 8)?, u16_at(central, 10)?);
    let (packed, size) = (offset_at(central, 20)?, u32_at(central, 24)?);
    let name_length = usize::from(u16_at(central, 28)?);
    let name = central.get(46..46 + name_length)?;
    let next =
        position + 46 + name_length + usize::from(u16_at(central, 30)?) + usize::from(u16_at(central, 32)?);
    let start = offset_at(central, 42)?;
    let local = bytes.get(start..directory.start)?;
    let local_name = usize::from(u16_at(local, 26)?);
    let has_sizes_behind = flags & 8 != 0;
    let sizes_agree = has_sizes_behind || (offset_at(local, 18)? == packed && u32_at(local, 22)? == size);
    let agrees = local.starts_with(b"PK\x03\x04")
        && u16_at(local, 6)? == flags
        && u16_at(local, 8)? == method
        && local.get(30..30 + local_name)? == name
        && sizes_agree;
    let data = start + 30 + local_name + usize::from(u16_at(local, 28)?);
    let end = data.checked_add(packed).filter(|end| *end <= directory.start && agrees)?;
    let entry = Entry {
        name: String::from_utf8_lossy(name).into_owned(),
        flags,
        method,
        data: data..end,
        whole: start..end,
        size: u64::from(size),
    };
    Some((entry, next))
}

/// Whether the entries are contiguous, without space for hidden ones.
fn are_contiguous(entries: &[Entry], directory: usize) -> bool {
    /// The longest record of sizes that may follow an entry.
    const SIZES_BEHIND: usize = 24;
    let mut ranges: Vec<Range<usize>> = entries.iter().map(|entry| entry.whole.clone()).collect();
    ranges.sort_by_key(|range| range.start);
    let mut end = 0;
    for range in ranges {
        if range.start < end || range.start - end > SIZES_BEHIND {
            return false;
        }
        end = range.end;
    }
    directory >= end && directory - end <= SIZES_BEHIND
}

/// Unpacks a file of a zip.
pub(super) fn unpack(bytes: &[u8], entry: &Entry, budget: &mut Budget) -> Result<Vec<u8>, Refusal> {
    budget.take_entry()?;
    if entry.flags & 1 != 0 || entry.method == 99 {
        return Err(Refusal::Encrypted);
    }
    let packed = bytes.get(entry.data.clone()).unwrap_or_default();
    let content = match entry.method {
        0 => read_within(packed, packed.len(), budget)?,
        8 => read_within(DeflateDecoder::new(packed), packed.len(), budget)?,
        _ => return Err(Refusal::Unreadable),
    };
    let has_size = u64::try_from(content.len()).is_ok_and(|size| size == entry.size);
    has_size.then_some(content).ok_or(Refusal::Unreadable)
}

/// Unpacks a gzip file.
pub(super) fn gunzip(bytes: &[u8], budget: &mut Budget) -> Result<Vec<u8>, Refusal> {
    budget.take_entry()?;
    read_within(MultiGzDecoder::new(bytes), bytes.len(), budget)
}

/// Reads to the end, unless that is more than the budget or the ratio allows.
fn read_within(reader: impl Read, packed: usize, budget: &mut Budget) -> Result<Vec<u8>, Refusal> {
    let packed = u64::try_from(packed).unwrap_or(u64::MAX);
    let max_bytes = budget.bytes.min(packed.saturating_mul(MAX_RATIO).max(RATIO_EXEMPT_BYTES));
    let mut content = Vec::new();
    let outcome = reader.take(max_bytes + 1).read_to_end(&mut content);
    let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
    budget.bytes = budget.bytes.saturating_sub(size);
    if size > max_bytes {
        return Err(Refusal::TooMuch);
    }
    outcome.map(|_| content).map_err(|_| Refusal::Unreadable)
}

/// The files of a tar with their names; `is_whole` becomes false when it cannot be read to its end.
pub(super) fn tar_entries<'a>(
    bytes: &'a [u8],
    budget: &mut Budget,
    is_whole: &mut bool,
) -> Vec<(String, &'a [u8])> {
    const BLOCK: usize = 512;
    let mut entries = Vec::new();
    let mut position = 0;
    loop {
        let Some(header) = bytes.get(position..position + BLOCK) else {
            *is_whole &= position >= bytes.len();
            return entries;
        };
        if header.iter().all(|byte| *byte == 0) {
            return entries;
        }
        let content = octal(header.get(124..136)).and_then(|size| {
            let start = position + BLOCK;
            Some(start..start.checked_add(size)?)
        });
        let Some((content, range)) = content.and_then(|range| Some((bytes.get(range.clone())?, range)))
        else {
            *is_whole = false;
            return entries;
        };
        if budget.take_entry().is_err() {
            *is_whole = false;
            return entries;
        }
        let name = header.get(..100).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
        if matches!(header.get(156), Some(b'0' | 0 | b'7')) {
            entries.push((String::from_utf8_lossy(name).into_owned(), content));
        }
        position = range.end.div_ceil(BLOCK) * BLOCK;
    }
}

/// A number as a tar header writes it.
fn octal(field: Option<&[u8]>) -> Option<usize> {
    let text = std::str::from_utf8(field?).ok()?.trim_matches(['\0', ' ']);
    if text.is_empty() { Some(0) } else { usize::from_str_radix(text, 8).ok() }
}

/// Whether a zip is an office document, by its typical entries.
pub(super) fn is_document(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
        && zip_entries(bytes).is_ok_and(|entries| {
            entries.iter().any(|entry| {
                matches!(
                    entry.name.as_str(),
                    "[Content_Types].xml" | "META-INF/container.xml" | "META-INF/manifest.xml"
                )
            })
        })
}

/// Whether a rar or 7z archive says that it is encrypted.
pub(super) fn is_locked(bytes: &[u8]) -> bool {
    /// The method number of AES in a 7z directory, which is at the end of the file.
    const AES_7Z: &[u8] = b"\x06\xf1\x07\x01";
    if bytes.starts_with(b"7z") {
        let tail = bytes.get(bytes.len().saturating_sub(64 * 1024)..).unwrap_or_default();
        return memmem::find(tail, AES_7Z).is_some();
    }
    if bytes.starts_with(b"Rar!\x1a\x07\x01\x00") {
        // Checksum, length, then the type of the first header: 4 means that all that follows is encrypted.
        return bytes.get(13) == Some(&4);
    }
    let archive_flags = u16_at(bytes, 7 + 3).unwrap_or(0);
    let first_file = 7 + usize::from(u16_at(bytes, 7 + 5).unwrap_or(13));
    let is_file = bytes.get(first_file + 2) == Some(&0x74);
    let file_flags = u16_at(bytes, first_file + 3).unwrap_or(0);
    archive_flags & 0x80 != 0 || (is_file && file_flags & 4 != 0)
}
