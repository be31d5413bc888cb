//! Whether a message may be answered automatically (RFC 3834): only what a person wrote to this very address.
//!
//! Two programs that answer each other never stop, and an answer to a list reaches thousands. So everything that looks
//! like a program, a list or a forgery gets no answer. The caller limits how often one sender is answered.

#[cfg(test)]
mod tests;

use crate::address::Address;
use crate::message::{Automatic, Message};

/// Received lines beyond which a message is probably looping.
const MAX_HOPS: usize = 25;

/// Local parts of programs. Those that end in a dash are beginnings.
const PROGRAM_LOCAL_PARTS: [&str; 12] = [
    "mailer-daemon",
    "postmaster",
    "noreply",
    "no-reply",
    "no_reply",
    "donotreply",
    "do-not-reply",
    "bounce",
    "bounces",
    "listserv",
    "majordomo",
    "owner-",
];

/// Endings of the local parts of lists' own addresses.
const LIST_SUFFIXES: [&str; 4] = ["-request", "-owner", "-bounces", "-relay"];

/// Why a message is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoReplyReason {
    /// It has the null sender: it is a report and cannot be answered.
    NullSender,
    /// Its headers say that it is automatic.
    Automatic(Automatic),
    /// Its sender's address is that of a program or a list.
    Program,
    /// It comes from an address of our own.
    Own,
    /// It is not addressed to us by name, but came by a list, an alias or a blind copy.
    NotAddressed,
    /// It has passed so many servers that it is probably looping.
    Loop,
    /// Its author cannot be read.
    Unreadable,
}

/// Whether a message may be answered by a program, and to whom the answer goes: its sender by the envelope.
///
/// `sender` is that sender; nothing or an empty text is the null sender. `own` are the addresses of the mailbox that
/// would answer. Plus-addresses count as the address that they lead to.
pub fn may_answer(message: &Message, sender: Option<&str>, own: &[&str]) -> Result<Address, NoReplyReason> {
    let sender = sender.filter(|sender| !sender.is_empty()).ok_or(NoReplyReason::NullSender)?;
    let sender = Address::parse(sender).map_err(|_| NoReplyReason::Unreadable)?;
    let author =
        message.from.as_ref().filter(|_| message.faults.is_empty()).ok_or(NoReplyReason::Unreadable)?;
    if let Some(kind) = message.automatic.or_else(|| list(message)) {
        return Err(NoReplyReason::Automatic(kind));
    }
    if message.received_lines > MAX_HOPS {
        return Err(NoReplyReason::Loop);
    }
    let own: Vec<Address> = own.iter().filter_map(|address| bare(address)).collect();
    let is_own = |address: &str| bare(address).is_some_and(|address| own.contains(&address));
    if is_own(sender.as_str()) || is_own(&author.address) {
        return Err(NoReplyReason::Own);
    }
    let authored_by_program = Address::parse(&author.address).is_ok_and(|address| is_program(&address));
    if is_program(&sender) || authored_by_program {
        return Err(NoReplyReason::Program);
    }
    let mut named = message.to.iter().chain(&message.cc);
    if !named.any(|person| is_own(&person.address)) {
        return Err(NoReplyReason::NotAddressed);
    }
    Ok(sender)
}

/// Any List-* header marks list mail, also those that are not read otherwise.
fn list(message: &Message) -> Option<Automatic> {
    let is_list = |line: &str| line.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("list-"));
    message.headers.lines().any(is_list).then_some(Automatic::List)
}

fn bare(address: &str) -> Option<Address> {
    Address::parse(address).ok().map(|address| address.without_tag())
}

fn is_program(address: &Address) -> bool {
    let normalised = address.without_tag();
    let local = normalised.as_str().rsplit_once('@').map_or("", |(local, _)| local);
    let is_known = PROGRAM_LOCAL_PARTS.iter().any(|name| match name.strip_suffix('-') {
        Some(_) => local.starts_with(name),
        None => local == *name,
    });
    is_known || LIST_SUFFIXES.iter().any(|ending| local.ends_with(ending)) || local.starts_with("srs0=")
}
