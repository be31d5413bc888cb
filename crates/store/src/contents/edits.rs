//! The text for agents as edits of the body.
//!
//! A plain text is cleaned for agents: spaces at the ends of lines, repeated empty lines and characters that nobody sees
//! go. What is left differs from the body in a few places, mostly the last line feed. Storing it again would double the
//! work of packing and sealing and the bytes on disk, so only the edits are kept, where they are few.

/// The first byte of what is sealed. Frames of whole contents and of messages around their body start with smaller ones.
const EDITS: u8 = 3;
/// The longest edits, with the tag: more would no longer be much shorter than a text.
pub(super) const MAX_EDITS_BYTES: usize = 256;

/// How far the body is searched for where it goes on like the text.
const MAX_SKIPPED: usize = 512;
/// How many bytes of the text may be its own in one place.
const MAX_INSERTED: usize = 16;
/// So many equal bytes are taken for the same place.
const SAME: usize = 8;

/// How a text is made from a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edits(Vec<Edit>);

/// Some bytes of the body, then some that are left out, then some that the body does not have.
#[derive(Debug, PartialEq, Eq)]
struct Edit {
    copied: usize,
    skipped: usize,
    inserted: Vec<u8>,
}

impl Edits {
    /// The frame of the edits that make a text from a body, if they are short.
    pub(super) fn framed(body: &[u8], text: &[u8]) -> Option<Vec<u8>> {
        let mut framed = vec![EDITS];
        let (mut from, mut made) = (0, 0);
        while made < text.len() {
            let copied =
                body[from..].iter().zip(&text[made..]).take_while(|(one, other)| one == other).count();
            (from, made) = (from + copied, made + copied);
            let (skipped, inserted) = difference(&body[from..], &text[made..])?;
            let own = &text[made..made + inserted];
            for number in [copied, skipped, inserted] {
                put_number(&mut framed, number);
            }
            framed.extend_from_slice(own);
            if framed.len() > MAX_EDITS_BYTES {
                return None;
            }
            (from, made) = (from + skipped, made + inserted);
        }
        Some(framed)
    }

    /// From their frame; nothing if it is another's.
    pub(super) fn unframed(frame: &[u8]) -> Option<Self> {
        let mut rest = frame.strip_prefix(&[EDITS])?;
        let mut edits = Vec::new();
        while !rest.is_empty() {
            let (copied, skipped) = (take_number(&mut rest)?, take_number(&mut rest)?);
            let inserted;
            let length = take_number(&mut rest)?;
            (inserted, rest) = rest.split_at_checked(length)?;
            edits.push(Edit { copied, skipped, inserted: inserted.to_vec() });
        }
        Some(Self(edits))
    }

    /// The text, or as much of it as the beginning of the body gives.
    pub(super) fn apply(&self, body: &[u8]) -> Vec<u8> {
        let (mut text, mut rest) = (Vec::with_capacity(body.len()), body);
        for edit in &self.0 {
            let Some((copied, after)) = rest.split_at_checked(edit.copied) else {
                text.extend_from_slice(rest);
                break;
            };
            text.extend_from_slice(copied);
            text.extend_from_slice(&edit.inserted);
            let Some(after) = after.get(edit.skipped..) else { break };
            rest = after;
        }
        text
    }
}

/// How much of a body is left out and how much of a text is its own until both go on alike.
fn difference(body: &[u8], text: &[u8]) -> Option<(usize, usize)> {
    if text.is_empty() {
        return Some((0, 0));
    }
    let is_same = |skipped: usize, inserted: usize| {
        let (Some(body), Some(text)) = (body.get(skipped..), text.get(inserted..)) else { return false };
        text.is_empty() || body.starts_with(&text[..text.len().min(SAME)])
    };
    let left_out = (1..=MAX_SKIPPED).map(|skipped| (skipped, 0));
    let replaced =
        (1..=MAX_INSERTED).flat_map(|inserted| (0..=MAX_INSERTED).map(move |skipped| (skipped, inserted)));
    left_out.chain(replaced).find(|(skipped, inserted)| is_same(*skipped, *inserted))
}

/// Seven bits in a byte, the lowest first; the eighth tells that there are more.
fn put_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    let (mut number, mut shift) = (0_usize, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= usize::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(body: &str, text: &str) -> Option<usize> {
        let framed = Edits::framed(body.as_bytes(), text.as_bytes())?;
        let edits = Edits::unframed(&framed).expect("a frame");
        assert_eq!(edits.apply(body.as_bytes()), text.as_bytes(), "{body:?}");
        for length in 0..body.len() {
            let start = edits.apply(&body.as_bytes()[..length]);
            assert!(text.as_bytes().starts_with(&start), "{body:?} up to {length}");
        }
        Some(framed.len())
    }

    #[test]
    fn a_cleaned_text_takes_a_few_bytes() {
        let long = "A line of a long text.\n".repeat(500);
        assert_eq!(edited(&long, long.trim_end()), Some(5));
        assert!(edited("one  \n\n\n\ntwo \u{200b}words\n", "one\n\ntwo words").is_some());
        assert!(
            edited(
                "go to http://b\u{fc}cher.example/ now, please",
                "go to http://xn--bcher-kva.example/ now, please"
            )
            .is_some_and(|bytes| bytes < 40)
        );
        assert!(edited("some text", "").is_some());
        assert!(edited("", "").is_some());
        assert!(edited("end", "the end").is_some());
        assert!(edited("the", "the end").is_some());
    }

    #[test]
    fn another_text_is_not_taken_for_an_edited_one() {
        assert_eq!(
            edited("<p>Some words of a page</p>", "entirely different words, many more of them"),
            None
        );
        let flowed = "a line with a space \n".repeat(400);
        assert_eq!(edited(&flowed, &flowed.replace(" \n", "\n")), None, "too many edits");
    }

    #[test]
    fn damaged_frames_are_refused() {
        for damaged in [&[][..], &[2, 1], &[EDITS, 0x80], &[EDITS, 1, 1, 9, 0], &[EDITS; 30]] {
            assert_eq!(Edits::unframed(damaged), None, "{damaged:?}");
        }
        let too_large = [&[EDITS][..], &[0xff; 12], &[0, 0, 0]].concat();
        assert_eq!(Edits::unframed(&too_large), None);
    }
}
