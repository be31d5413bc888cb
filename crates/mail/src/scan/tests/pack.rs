//! Small writers of the formats that the scanner reads.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};

/// A file for a zip.
pub(super) struct Item<'a> {
    pub(super) name: &'a str,
    pub(super) content: Vec<u8>,
    pub(super) flags: u16,
}

pub(super) fn item(name: &str, content: impl Into<Vec<u8>>) -> Item<'_> {
    Item { name, content: content.into(), flags: 0 }
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn size(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap().to_le_bytes()
}

fn short(number: usize) -> [u8; 2] {
    u16::try_from(number).unwrap().to_le_bytes()
}

/// A zip with deflated entries.
pub(super) fn zip(items: &[Item<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut directory = Vec::new();
    for item in items {
        let start = size(&bytes);
        let packed = deflate(&item.content);
        let mut common = Vec::new();
        common.extend(20_u16.to_le_bytes());
        common.extend(item.flags.to_le_bytes());
        common.extend(8_u16.to_le_bytes());
        common.extend([0; 8]);
        common.extend(size(&packed));
        common.extend(size(&item.content));
        common.extend(short(item.name.len()));
        common.extend([0; 2]);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(item.name.as_bytes());
        bytes.extend(&packed);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(start);
        directory.extend(item.name.as_bytes());
    }
    let start = size(&bytes);
    let count = short(items.len());
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count, count].concat());
    bytes.extend(size(&directory));
    bytes.extend(start);
    bytes.extend([0; 2]);
    bytes
}

/// A tar with one file.
pub(super) fn tar(name: &str, content: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    header[156] = b'0';
    header[257..262].copy_from_slice(b"ustar");
    let mut bytes = header.to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().div_ceil(512) * 512 + 1024, 0);
    bytes
}

/// A container of old Office with one directory entry of that name.
pub(super) fn ole(name: &str) -> Vec<u8> {
    let mut bytes = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec();
    bytes.resize(1024, 0);
    let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes[512..512 + units.len()].copy_from_slice(&units);
    bytes[576..578].copy_from_slice(&short(units.len() + 2));
    bytes[578] = 1;
    bytes
}

/// Base64 in lines.
pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for (number, group) in bytes.chunks(3).enumerate() {
        let value =
            group.iter().fold(0_u32, |value, &byte| value << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for digit in 0..4 {
            let index = value >> (18 - 6 * digit) & 63;
            text.push(if digit > group.len() { '=' } else { char::from(ALPHABET[index as usize]) });
        }
        if number % 19 == 18 {
            text.push('\n');
        }
    }
    text.trim_end().to_owned()
}
