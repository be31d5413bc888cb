//! The mix of messages that the kept connections send: real ones, and made ones of the sizes that real ones lack.
//!
//! It is the same in every run. Each sent copy has fields of its own, because the service stores equal contents once.

use std::{io::Write as _, path::Path, sync::Arc};

use super::{
    corpora::{self, Kind, PreparedMessage},
    made,
};
use crate::fill::next_random;

/// Messages of the mix.
const MESSAGES: usize = 5_000;
/// How many of a hundred messages are of a kind, and how many of a hundred of those are real.
const SHARES: [(Kind, usize, usize); 4] =
    [(Kind::Text, 82, 50), (Kind::Html, 10, 50), (Kind::File, 6, 25), (Kind::Bounce, 2, 100)];

/// The messages, in the order in which they are sent, again and again.
pub(super) struct Mix {
    messages: Vec<PreparedMessage>,
    real: usize,
}

impl Mix {
    /// Reads the collections and makes the rest; `None` where there are none.
    pub(super) fn read() -> Option<Arc<Self>> {
        let variable = corpora::VARIABLE;
        let Some(folder) = std::env::var_os(variable) else {
            eprintln!(
                "no messages over kept connections: {variable} does not name the folder of public messages; \
                 run scripts/bench, or set it to what scripts/corpora prints"
            );
            return None;
        };
        let real = corpora::read_folder(Path::new(&folder));
        if real.is_empty() {
            eprintln!(
                "no messages over kept connections: there is no message in {}, which {variable} names; \
                 scripts/corpora fetches them",
                folder.display()
            );
            return None;
        }
        Some(Arc::new(Self::new(&real, MESSAGES)))
    }

    /// A small mix without real messages.
    #[cfg(test)]
    pub(super) fn of_made(count: usize) -> Arc<Self> {
        Arc::new(Self::new(&[], count))
    }

    /// Each real message is there as often as the others of its kind.
    fn new(real: &[PreparedMessage], count: usize) -> Self {
        let mut messages = Vec::with_capacity(count);
        for (kind, share, real_share) in SHARES {
            let wanted = count * share / 100;
            let known: Vec<&PreparedMessage> = real.iter().filter(|message| message.kind == kind).collect();
            let copies = if known.is_empty() { 0 } else { wanted * real_share / 100 };
            messages.extend(known.into_iter().cycle().take(copies).cloned());
            messages.extend((0..wanted - copies).map(|n| made::message(kind, n, wanted - copies)));
        }
        shuffle(&mut messages);
        Self { messages, real: real.len() }
    }

    /// The message that is sent as the n-th.
    fn get(&self, n: usize) -> &PreparedMessage {
        &self.messages[n % self.messages.len()]
    }

    /// Writes the beginning of the message that is sent as the n-th: the fields that no other has.
    pub(super) fn write_beginning(&self, n: usize, buffer: &mut Vec<u8>) {
        let subject = &self.get(n).subject;
        let written = write!(buffer, "X-Bench: {n}\r\nMessage-ID: <{n}@bench.remote.test>\r\nSubject: ")
            .and_then(|()| buffer.write_all(subject))
            .and_then(|()| write!(buffer, " {n}\r\nDate: Mon, 13 Jul 2026 10:00:00 +0000\r\n"));
        written.expect("memory can be written");
    }

    /// All that follows, to the dot at the end.
    pub(super) fn rest(&self, n: usize) -> &[u8] {
        &self.get(n).rest
    }

    /// The size of the largest message, without its beginning.
    pub(super) fn largest(&self) -> usize {
        self.messages.iter().map(|message| message.rest.len()).max().unwrap_or(0)
    }

    fn mean(&self) -> usize {
        self.messages.iter().map(|message| message.rest.len()).sum::<usize>() / self.messages.len()
    }

    pub(super) fn describe(&self) -> String {
        format!(
            "{} messages from {} public ones and made ones, {} bytes on average, the largest of {} bytes",
            self.messages.len(),
            self.real,
            self.mean(),
            self.largest()
        )
    }
}

/// Puts them into an order that is random, and the same in every run.
fn shuffle(messages: &mut [PreparedMessage]) {
    let mut state = 1;
    for last in (1..messages.len()).rev() {
        let chosen = next_random(&mut state) % (last as u64 + 1);
        messages.swap(last, usize::try_from(chosen).unwrap_or(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real() -> Vec<PreparedMessage> {
        let message = |kind, text: &str| {
            let raw = format!("From: a@b.test\nTo: c@d.test\nSubject: {text}\n\n{text}\n");
            PreparedMessage { kind, ..PreparedMessage::new(raw.as_bytes()).unwrap() }
        };
        vec![message(Kind::Text, "one"), message(Kind::Html, "two"), message(Kind::Bounce, "three")]
    }

    #[test]
    fn a_mix_has_its_shares_in_an_order_that_repeats() {
        let mix = Mix::new(&real(), 500);
        assert_eq!(mix.messages, Mix::new(&real(), 500).messages);
        for (kind, share, _) in SHARES {
            let count = |messages: &[PreparedMessage]| messages.iter().filter(|one| one.kind == kind).count();
            let all = count(&mix.messages);
            assert_eq!(all, 5 * share, "{kind:?}");
            assert!(count(&mix.messages[..400]) < all, "{kind:?} all at the beginning");
        }
    }

    #[test]
    fn each_copy_is_another_message() {
        let mix = Mix::new(&real(), 100);
        let beginning = |n| {
            let mut buffer = Vec::new();
            mix.write_beginning(n, &mut buffer);
            String::from_utf8(buffer).unwrap()
        };
        assert_eq!(mix.rest(7), mix.rest(107));
        assert_ne!(beginning(7), beginning(107));
        assert!(beginning(107).starts_with("X-Bench: 107\r\nMessage-ID: <107@bench.remote.test>\r\n"));
        assert!(beginning(107).lines().all(|line| line.contains(": ")), "{}", beginning(107));
    }
}
