//! The frame of a content before it is sealed: compressed when that helps, preceded by its size.

use std::cell::RefCell;

use bytes::Bytes;

/// The largest content accepted (1 GiB), and so the most that reading a blob may decompress.
pub const MAX_CONTENT_BYTES: usize = 1 << 30;

/// The largest stored blob: the largest content, its frame and its seal.
pub(super) const MAX_STORED_BYTES: usize = MAX_CONTENT_BYTES + 1024;

const COMPRESSION_LEVEL: i32 = 1;
const FRAME_HEADER: usize = 1 + size_of::<u64>();
const FRAME_PLAIN: u8 = 0;
const FRAME_ZSTD: u8 = 1;

/// Contents up to this size use the thread's compressor; a larger one would keep its memory allocated.
const MAX_POOLED_BYTES: usize = 256 * 1024;

thread_local! {
    // Creating these costs more than compressing a small message.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

fn pack(content: &[u8]) -> Option<Vec<u8>> {
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

/// Frames a content for sealing: compression, size, bytes.
pub(crate) fn frame(content: &[u8]) -> Vec<u8> {
    let packed = pack(content).filter(|packed| packed.len() < content.len());
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

/// Parses a frame; `None` if it is not one.
pub(crate) fn unframe(frame: Vec<u8>) -> Option<Bytes> {
    let (&kind, rest) = frame.split_first()?;
    let (size, packed) = rest.split_first_chunk()?;
    let size = usize::try_from(u64::from_le_bytes(*size)).ok().filter(|size| *size <= MAX_CONTENT_BYTES)?;
    let content = match kind {
        FRAME_PLAIN => Bytes::from(frame).slice(FRAME_HEADER..),
        // The recorded size bounds the decompressed size, whatever the compressed bytes claim.
        FRAME_ZSTD => Bytes::from(unpack(packed, size)?),
        _ => return None,
    };
    (content.len() == size).then_some(content)
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
            assert_eq!(unframe(broken), None);
        }
    }
}
