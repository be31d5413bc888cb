//! Whether a program may answer a mail by itself (RFC 3834): only what a person wrote to this very address.
//!
//! Two programs that answer each other never stop, and an answer to a list reaches thousands. So everything that looks
//! like a program, a list or a forgery is met with silence. How often one sender is answered is for the caller to count.

#[cfg(test)]
mod tests;

use crate::address::Address;
use crate::message::{Automatic, Message};

/// Servers that a mail may have passed; beyond, it probably goes in circles.
const MAX_HOPS: usize = 25;

/// Local parts of programs. Those that end in a dash are beginnings.
const PROGRAMS: [&str; 12] = [
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
const LIST_ENDINGS: [&str; 4] = ["-request", "-owner", "-bounces", "-relay"];

/// Why a mail is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Silence {
    /// It has the null sender: it is a report, and there is nobody to answer to.
    NullSender,
    /// It says that no person wrote it.
    Automatic(Automatic),
    /// Its sender's address is that of a program or a list.
    Program,
    /// It comes from an address of our own.
    Own,
    /// It is not addressed to us by name, but came by a list, an alias or a blind copy.
    NotAddressed,
    /// It has passed so many servers that it probably goes in circles.
    Loop,
    /// It cannot be told who wrote it.
    Unreadable,
}

/// Whether a mail may be answered by a program, and to whom the answer goes: its sender by the envelope.
///
/// `sender` is that sender; nothing or an empty text is the null sender. `own` are the addresses of the mailbox that
/// would answer. Plus-addresses count as the address that they lead to.
pub fn may_answer(message: &Message, sender: Option<&str>, own: &[&str]) -> Result<Address, Silence> {
    let sender = sender.filter(|sender| !sender.is_empty()).ok_or(Silence::NullSender)?;
    let sender = Address::parse(sender).map_err(|_| Silence::Unreadable)?;
    let author = message.from.as_ref().filter(|_| message.faults.is_empty()).ok_or(Silence::Unreadable)?;
    if let Some(kind) = message.automatic.or_else(|| list(message)) {
        return Err(Silence::Automatic(kind));
    }
    if message.received_lines > MAX_HOPS {
        return Err(Silence::Loop);
    }
    let own: Vec<Address> = own.iter().filter_map(|address| bare(address)).collect();
    let is_own = |address: &str| bare(address).is_some_and(|address| own.contains(&address));
    if is_own(sender.as_str()) || is_own(&author.address) {
        return Err(Silence::Own);
    }
    let authored_by_program = Address::parse(&author.address).is_ok_and(|address| is_program(&address));
    if is_program(&sender) || authored_by_program {
        return Err(Silence::Program);
    }
    let mut named = message.to.iter().chain(&message.cc);
    if !named.any(|person| is_own(&person.address)) {
        return Err(Silence::NotAddressed);
    }
    Ok(sender)
}

/// Any header of a list makes a mail one of a list, also those that say nothing else to us.
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
    let is_known = PROGRAMS.iter().any(|name| match name.strip_suffix('-') {
        Some(_) => local.starts_with(name),
        None => local == *name,
    });
    is_known || LIST_ENDINGS.iter().any(|ending| local.ends_with(ending)) || local.starts_with("srs0=")
}
