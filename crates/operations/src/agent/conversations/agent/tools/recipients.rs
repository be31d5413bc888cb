//! The recipients that an approved message may be sent to: approval covers whom the person named, not what the model
//! read.
//!
//! These are all addresses that the person wrote in the conversation, and the sender of the thread that the
//! conversation is about. A message never adds to them: neither its text nor its Reply-To is considered.

use std::collections::HashSet;

use mail::address::{Address, Mailbox};
use model::{MailboxId, conversations::Conversation};
use store::{Tx, emails};

use crate::core::error::Result;

/// The addresses that one message to the agent may send to.
pub(super) struct NamedRecipients(HashSet<String>);

impl NamedRecipients {
    /// The addresses that the person wrote, and the sender of the conversation's thread.
    pub(super) fn new<'a>(said: impl Iterator<Item = &'a str>, about: Option<&str>) -> Self {
        let sender = about.and_then(|text| Address::parse(text).ok());
        Self(said.flat_map(written).chain(sender).map(|address| key_of(&address)).collect())
    }

    /// The given recipients that the person did not name.
    pub(super) fn missing<'a>(&self, recipients: impl Iterator<Item = &'a Mailbox>) -> Vec<String> {
        let addresses = recipients.map(Mailbox::address).filter(|one| !self.0.contains(&key_of(one)));
        addresses.map(ToString::to_string).collect()
    }
}

/// The sender of the thread that a conversation is about, if it was a single one when the conversation began. With
/// several it is unclear whom the person means, and a later one is not whom the person saw.
pub(in super::super) async fn sender_of(
    tx: &mut Tx,
    mailbox: &MailboxId,
    conversation: &Conversation,
) -> Result<Option<String>> {
    let Some(thread) = &conversation.thread_id else { return Ok(None) };
    let senders = emails::thread_senders(tx, mailbox, thread, conversation.created_at).await?;
    Ok(<[String; 1]>::try_from(senders).ok().map(|[sender]| sender))
}

/// Addresses are compared case-insensitively: an invisible difference must neither redirect a message nor prevent it.
fn key_of(address: &Address) -> String {
    address.as_str().to_lowercase()
}

/// The addresses in a text, exactly as written: cutting a character off an address makes another one.
fn written(text: &str) -> Vec<Address> {
    let edge = |c: char| c.is_whitespace() || "<>()[],;:\"“”„‘’‚«»‹›，。；：、（）【】《》".contains(c);
    let words = text.split(edge).filter(|word| word.contains('@'));
    words.filter_map(|word| Address::parse(bare(word)).ok()).collect()
}

/// A word without the punctuation around it. A character that may begin an address is removed only where it also ends
/// the word, like quotation marks and emphasis.
fn bare(word: &str) -> &str {
    let inner = word.trim_end_matches(|c: char| !c.is_alphanumeric());
    let behind = &word[inner.len()..];
    let closes = |c: char| match c {
        '.' => true,
        '{' => behind.contains('}'),
        '\'' | '`' | '*' | '_' | '~' | '|' => behind.contains(c),
        _ => false,
    };
    inner.trim_start_matches(closes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        written(text).iter().map(key_of).collect()
    }

    #[test]
    fn addresses_are_found_in_what_people_write() {
        let text = "Send it to Bob <bob@example.org>, (Eve@Example.org) and \"x@y.test\". Or ask a@b? mailto:c@d.test!";
        assert_eq!(found(text), ["bob@example.org", "eve@example.org", "x@y.test", "a@b", "c@d.test"]);
        let marked = "*bob@a.test*, _eve@a.test_. `ann@a.test` 'joe@a.test' {tim@a.test} “kim@a.test”";
        assert_eq!(
            found(marked),
            ["bob@a.test", "eve@a.test", "ann@a.test", "joe@a.test", "tim@a.test", "kim@a.test"]
        );
        assert!(found("no address @ all, foo@, @bar").is_empty());
    }

    // rules: AGENT-12
    #[test]
    fn no_address_is_made_of_a_part_of_another() {
        for (text, address) in [
            ("o'brien@a.test", "o'brien@a.test"),
            ("_bob@a.test", "_bob@a.test"),
            ("*bob@a.test", "*bob@a.test"),
            ("not|bob@a.test", "not|bob@a.test"),
            ("to=bob@a.test", "to=bob@a.test"),
            ("bob+tag@a.test", "bob+tag@a.test"),
        ] {
            assert_eq!(found(text), [address]);
        }
        assert!(found("bob@a.test/eve@b.test bob@a.test@b.test").is_empty());
    }

    // rules: AGENT-12
    #[test]
    fn only_whole_addresses_are_named() {
        let named = NamedRecipients::new(["Write to Bob@People.test"].into_iter(), Some("ada@remote.test"));
        let missing = |text: &str| named.missing([Mailbox::parse(text).unwrap()].iter());
        for text in ["bob@people.test", "BOB@PEOPLE.TEST", "Collector <bob@people.test>", "ada@remote.test"] {
            assert!(missing(text).is_empty(), "{text}");
        }
        for text in [
            "bob@people.test.evil.test",
            "xbob@people.test",
            "bob+x@people.test",
            "\"bob@people.test\" <c@evil.test>",
        ] {
            assert_eq!(missing(text).len(), 1, "{text}");
        }
    }
}
