//! Transfer encodings, decoded as leniently as any mail client might, while noting every deviation.
//!
//! Decoders disagree about broken base64; callers must know when other readings are possible.

/// A transfer encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As it is: 7bit, 8bit or binary.
    Identity,
    /// Base64.
    Base64,
    /// Quoted-printable.
    QuotedPrintable,
}

/// The decoded bytes of base64; invalid bytes are skipped.
pub(super) fn base64(encoded: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(encoded.len() / 4 * 3 + 3);
    let mut group = 0_u32;
    let mut digits = 0_u32;
    let mut rest = encoded;
    loop {
        // Nearly all of it is whole groups.
        while digits == 0
            && let Some((four, after)) = rest.split_first_chunk()
            && let Some(whole) = whole_group(*four)
        {
            decoded.extend_from_slice(&whole);
            rest = after;
        }
        let Some((&byte, after)) = rest.split_first() else { break };
        rest = after;
        match class(byte) {
            PADDING => {
                finish_group(group, digits, &mut decoded);
                (group, digits) = (0, 0);
            }
            SPACE | OTHER => {}
            digit => {
                group = group << 6 | u32::from(digit);
                digits += 1;
                if digits == 4 {
                    decoded.extend_from_slice(group.to_be_bytes().get(1..).unwrap_or_default());
                    (group, digits) = (0, 0);
                }
            }
        }
    }
    finish_group(group, digits, &mut decoded);
    decoded
}

/// The three bytes of four digits; nothing if one of them is no digit.
fn whole_group(four: [u8; 4]) -> Option<[u8; 3]> {
    let [a, b, c, d] = four.map(class);
    // Digits are below all other classes, and have none of their bits.
    (a | b | c | d < SPACE).then_some([a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d])
}

/// Adds the bytes of a last, short group.
fn finish_group(group: u32, digits: u32, decoded: &mut Vec<u8>) {
    let bytes = match digits {
        2 => (group << 12).to_be_bytes(),
        3 => (group << 6).to_be_bytes(),
        _ => return,
    };
    decoded.extend(bytes.iter().skip(1).take(digits as usize - 1));
}

/// The result of decoding, computed without decoding.
pub(super) struct Measure {
    /// Bytes after decoding.
    pub(super) size: usize,
    /// Whether every decoder gives the same bytes.
    pub(super) sound: bool,
}

/// Measures base64.
pub(super) fn measure_base64(encoded: &[u8]) -> Measure {
    let before_padding = memchr::memchr(b'=', encoded).unwrap_or(encoded.len());
    let (data, tail) = encoded.split_at(before_padding);
    let mut digits = 0_usize;
    let mut others = 0_usize;
    let (groups, last) = data.as_chunks::<4>();
    let mut count = |bytes: &[u8]| {
        for class in bytes.iter().copied().map(class) {
            digits += usize::from(class < SPACE);
            others += usize::from(class == OTHER);
        }
    };
    let mut whole_groups = 0;
    for four in groups {
        match whole_group(*four) {
            Some(_) => whole_groups += 1,
            None => count(four),
        }
    }
    count(last);
    digits += 4 * whole_groups;
    let padding = memchr::memchr_iter(b'=', tail).count();
    let only_padding = tail.iter().all(|&byte| byte == b'=' || class(byte) == SPACE);
    let expected = match digits % 4 {
        0 => Some(0),
        1 => None,
        rest => Some(4 - rest),
    };
    let sound = others == 0 && only_padding && expected == Some(padding);
    let size =
        if only_padding { digits / 4 * 3 + (digits % 4).saturating_sub(1) } else { base64(encoded).len() };
    Measure { size, sound }
}

const SPACE: u8 = 64;
const PADDING: u8 = 65;
const OTHER: u8 = 66;

/// The value of each byte as a base64 digit, or its class.
static CLASSES: [u8; 256] = classes();

fn class(byte: u8) -> u8 {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(OTHER)
}

#[expect(clippy::cast_possible_truncation, reason = "the index is below 64")]
const fn classes() -> [u8; 256] {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut classes = [OTHER; 256];
    let mut digit = 0;
    while digit < alphabet.len() {
        classes[alphabet[digit] as usize] = digit as u8;
        digit += 1;
    }
    classes[b'=' as usize] = PADDING;
    classes[b' ' as usize] = SPACE;
    classes[b'\t' as usize] = SPACE;
    classes[b'\r' as usize] = SPACE;
    classes[b'\n' as usize] = SPACE;
    classes
}

/// The decoded bytes of quoted-printable; an `=` that begins nothing stays as it is.
pub(super) fn quoted_printable(encoded: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(encoded.len());
    read_quoted_printable(encoded, |bytes| decoded.extend_from_slice(bytes));
    decoded
}

/// Measures quoted-printable.
pub(super) fn measure_quoted_printable(encoded: &[u8]) -> Measure {
    let mut size = 0;
    let sound = read_quoted_printable(encoded, |bytes| size += bytes.len());
    Measure { size, sound }
}

/// Emits decoded pieces; false when something deviates from the standard.
fn read_quoted_printable(encoded: &[u8], mut out: impl FnMut(&[u8])) -> bool {
    let mut sound = true;
    let mut position = 0;
    while position < encoded.len() {
        let rest = encoded.get(position..).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let line = rest.get(..end).unwrap_or_default();
        sound &= read_line(line, &mut out);
        position += end;
    }
    sound
}

/// Decodes one line with its end.
fn read_line(line: &[u8], out: &mut impl FnMut(&[u8])) -> bool {
    let body = line.strip_suffix(b"\n").unwrap_or(line);
    let body = body.strip_suffix(b"\r").unwrap_or(body);
    let line_end = line.get(body.len()..).unwrap_or_default();
    let body = body.trim_ascii_end();
    let mut sound = true;
    let mut position = 0;
    while let Some(found) = memchr::memchr(b'=', body.get(position..).unwrap_or_default()) {
        let equals = position + found;
        out(body.get(position..equals).unwrap_or_default());
        position = equals + 1;
        match body.get(equals + 1..).unwrap_or_default() {
            [] => return sound,
            [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                out(&[hex(*high) << 4 | hex(*low)]);
                position += 2;
            }
            _ => {
                sound = false;
                out(b"=");
            }
        }
    }
    out(body.get(position..).unwrap_or_default());
    out(line_end);
    sound
}

/// The value of a hexadecimal digit.
pub(super) fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => 0,
    }
}
