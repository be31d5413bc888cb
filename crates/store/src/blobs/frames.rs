//! The frame of a content before it is sealed: compressed when that helps, preceded by its size.
//!
//! Texts are compressed in blocks, so that a search for a passage unpacks no more of them than it reads.

use std::cell::RefCell;

use bytes::Bytes;
use zstd::zstd_safe;

/// The largest content accepted (1 GiB), and so the most that reading a blob may decompress.
pub const MAX_CONTENT_BYTES: usize = 1 << 30;

/// The largest stored blob: the largest content, its frame and its seal.
pub(super) const MAX_STORED_BYTES: usize = MAX_CONTENT_BYTES + 1024;

const COMPRESSION_LEVEL: i32 = 1;
const FRAME_HEADER: usize = 1 + size_of::<u64>();
const FRAME_PLAIN: u8 = 0;
const FRAME_ZSTD: u8 = 1;

/// Contents below this size, a page of the store, are stored as they are: compressing saves a fraction of a page, and
/// takes longer than all else that a read of them does.
const MIN_PACKED_BYTES: usize = 4096;

/// Contents up to this size use the thread's compressor; a larger one would keep its memory allocated.
const MAX_POOLED_BYTES: usize = 256 * 1024;

thread_local! {
    // Creating these costs more than compressing a small message.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

fn pack(content: &[u8]) -> Option<Vec<u8>> {
    if content.len() < MIN_PACKED_BYTES { None } else { compress(content) }
}

fn compress(content: &[u8]) -> Option<Vec<u8>> {
    if content.len() > MAX_POOLED_BYTES {
        return zstd::bulk::compress(content, COMPRESSION_LEVEL).ok();
    }
    COMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = zstd::bulk::Compressor::new(COMPRESSION_LEVEL).ok();
        }
        kept.as_mut()?.compress(content).ok()
    })
}

fn unpack(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = zstd::bulk::Decompressor::new().ok();
        }
        kept.as_mut()?.decompress(packed, size).ok()
    })
}

/// The first block of a text. Each block after it is as long as all before it: whoever stops early has unpacked at most
/// twice what was needed, and most of a long text is in blocks that compress well.
const FIRST_BLOCK_BYTES: usize = 4 * 1024;
/// A shorter rest belongs to the block before it.
const MIN_BLOCK_BYTES: usize = 1024;

/// Compresses a text block by block. Decompressors read such a sequence as one content.
fn pack_text(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() < MIN_PACKED_BYTES {
        return None;
    }
    let (mut packed, mut read) = (Vec::new(), 0);
    while read < text.len() {
        let end = (read + read.max(FIRST_BLOCK_BYTES)).min(text.len());
        let end = if text.len() - end < MIN_BLOCK_BYTES { text.len() } else { end };
        packed.extend(compress(&text[read..end])?);
        read = end;
    }
    Some(packed)
}

/// Unpacks blocks until there are no more, or enough.
fn unpack_blocks(packed: &[u8], size: usize, enough: &mut dyn FnMut(&[u8]) -> bool) -> Option<Vec<u8>> {
    let (mut unpacked, mut rest) = (Vec::new(), packed);
    while !rest.is_empty() {
        let (block, after) = rest.split_at_checked(zstd_safe::find_frame_compressed_size(rest).ok()?)?;
        let room = size.checked_sub(unpacked.len())?;
        let length = zstd_safe::get_frame_content_size(block).ok()??;
        let length = usize::try_from(length).ok().filter(|length| *length <= room)?;
        let bytes = unpack(block, length)?;
        if unpacked.is_empty() {
            unpacked = bytes;
        } else {
            unpacked.extend(bytes);
        }
        rest = after;
        if !rest.is_empty() && enough(&unpacked) {
            return Some(unpacked);
        }
    }
    (unpacked.len() == size).then_some(unpacked)
}

/// Frames a content for sealing: compression, size, bytes.
pub(crate) fn frame(content: &[u8]) -> Vec<u8> {
    framed(content, pack(content))
}

/// Frames a text, in blocks.
pub(crate) fn frame_text(text: &[u8]) -> Vec<u8> {
    framed(text, pack_text(text))
}

fn framed(content: &[u8], packed: Option<Vec<u8>>) -> Vec<u8> {
    let packed = packed.filter(|packed| packed.len() < content.len());
    let (kind, bytes) = match &packed {
        Some(packed) => (FRAME_ZSTD, packed.as_slice()),
        None => (FRAME_PLAIN, content),
    };
    let mut frame = Vec::with_capacity(FRAME_HEADER + bytes.len());
    frame.push(kind);
    frame.extend_from_slice(&(content.len() as u64).to_le_bytes());
    frame.extend_from_slice(bytes);
    frame
}

/// The parts of a frame: how it is packed, the size of the content, and the packed bytes.
fn parse(frame: &[u8]) -> Option<(u8, usize, &[u8])> {
    let (&kind, rest) = frame.split_first()?;
    let (size, packed) = rest.split_first_chunk()?;
    let size = usize::try_from(u64::from_le_bytes(*size)).ok().filter(|size| *size <= MAX_CONTENT_BYTES)?;
    Some((kind, size, packed))
}

/// Parses a frame; `None` if it is not one.
pub(crate) fn unframe(frame: Vec<u8>) -> Option<Bytes> {
    let (kind, size, packed) = parse(&frame)?;
    let content = match kind {
        FRAME_PLAIN => Bytes::from(frame).slice(FRAME_HEADER..),
        // The recorded size bounds the decompressed size, whatever the compressed bytes claim.
        FRAME_ZSTD => Bytes::from(unpack(packed, size)?),
        _ => return None,
    };
    (content.len() == size).then_some(content)
}

/// The beginning of the content of a frame: as many blocks of it as are enough, or all of it.
pub(crate) fn unframe_start(frame: Vec<u8>, enough: &mut dyn FnMut(&[u8]) -> bool) -> Option<Bytes> {
    match parse(&frame)? {
        (FRAME_ZSTD, size, packed) => unpack_blocks(packed, size, enough).map(Bytes::from),
        _ => unframe(frame),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::random;

    #[test]
    fn frames_unpack_to_what_they_were_and_not_to_more() {
        let random: [u8; 300] = random().unwrap();
        for content in [b"".as_slice(), b"a", &random, &vec![7; 100_000]] {
            let frame = frame(content);
            assert!(frame.len() <= content.len() + FRAME_HEADER);
            assert_eq!(unframe(frame).unwrap(), content);
        }
        let packed = frame(&vec![7; 100_000]);
        assert_eq!(packed[0], FRAME_ZSTD);
        for size in [0_u64, 99_999, 100_001, MAX_CONTENT_BYTES as u64 + 1, u64::MAX] {
            let mut lying = packed.clone();
            lying[1..FRAME_HEADER].copy_from_slice(&size.to_le_bytes());
            assert_eq!(unframe(lying), None, "{size}");
        }
        for broken in [vec![], vec![FRAME_PLAIN], vec![9; 20]] {
            assert_eq!(unframe(broken.clone()), None);
            assert_eq!(unframe_start(broken, &mut |_| true), None);
        }
    }

    #[test]
    fn the_beginning_of_a_text_is_unpacked_without_the_rest() {
        let text = "A line of a long text.\n".repeat(5000);
        for length in [0, 1, 1023, 1024, 4096, 5000, 5200, 8192, 20_000, text.len()] {
            let text = &text.as_bytes()[..length];
            let framed = frame_text(text);
            assert_eq!(unframe(framed.clone()).unwrap(), text);
            assert_eq!(unframe_start(framed.clone(), &mut |_| false).unwrap(), text);
            let start = unframe_start(framed, &mut |_| true).unwrap();
            assert!(text.starts_with(&start) && start.len() <= FIRST_BLOCK_BYTES * 5 / 4, "{length}");
        }
        let mut seen = Vec::new();
        let enough = &mut |start: &[u8]| {
            seen.push(start.len());
            seen.len() == 3
        };
        assert_eq!(unframe_start(frame_text(text.as_bytes()), enough).unwrap().len(), 16 * 1024);
        assert_eq!(seen, [4 * 1024, 8 * 1024, 16 * 1024]);
        // What was framed as one block, as all texts once were, is read as one.
        let whole = unframe_start(frame(text.as_bytes()), &mut |_| true).unwrap();
        assert_eq!(whole, text.as_bytes());
    }
}
