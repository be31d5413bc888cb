//! Sender rewriting for forwarded mail (SRS): an address of ours that stands for the original sender.
//!
//! A forwarded message that kept its sender would fail SPF at the next server. With a rewritten sender its bounces come
//! to us, and we return them to the original sender. A hash makes sure that only addresses made here are reversed, and
//! only for some weeks, so that we are no open relay.

#[cfg(test)]
mod tests;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::address::Address;

/// How long an address can be reversed, in days.
const MAX_AGE_DAYS: i64 = 21;

/// Days after which the day number wraps around: two base32 digits.
const DAY_CYCLE: i64 = 1024;

/// Characters of a hash: 30 bits.
const HASH_CHARS: usize = 6;

/// Base32 digits, which survive servers that change case.
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Why an address cannot be rewritten or reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SrsError {
    /// It is no mail address.
    #[error("This is not a mail address.")]
    Address,
    /// Rewritten, it would be longer than an address may be.
    #[error("The address is too long to be rewritten.")]
    TooLong,
    /// It was not made here, or was changed.
    #[error("The address was not made by this server.")]
    Forged,
    /// It is too old.
    #[error("The address is no longer valid.")]
    Expired,
    /// It is not a rewritten address.
    #[error("The address is not a rewritten one.")]
    NotRewritten,
}

/// Rewrites senders and reverses them.
pub struct Srs {
    domain: String,
    keys: Vec<Hmac<Sha256>>,
}

impl Srs {
    /// Addresses at `domain`, which must be ours. The first key signs; the others were used before and still verify.
    /// Nothing when there is no key, or `domain` is no domain.
    pub fn new(domain: &str, keys: &[&[u8]]) -> Option<Self> {
        let checked = Address::parse(&format!("srs@{domain}")).ok()?;
        let keys: Option<Vec<_>> = keys.iter().map(|key| Hmac::new_from_slice(key).ok()).collect();
        let keys = keys.filter(|keys| !keys.is_empty())?;
        Some(Self { domain: checked.domain().to_owned(), keys })
    }

    /// The sender to forward a message of `sender` with; `now` is the time in seconds since 1970.
    pub fn forward(&self, sender: &str, now: i64) -> Result<String, SrsError> {
        let address = Address::parse(sender).map_err(|_| SrsError::Address)?;
        if address.domain() == self.domain {
            return Ok(sender.to_owned());
        }
        let local = match split(address.local()) {
            // Rewritten by another server: its name is kept in front, and bounces go through it.
            Some(("SRS0", rest)) => self.second(address.domain(), rest),
            // Already rewritten twice: the server in between is left out, since the first one is known.
            Some((_, rest)) if rest.split_once('=').is_some_and(|(_, tail)| tail.contains("==")) => {
                let tail = rest.split_once('=').map_or("", |(_, tail)| tail);
                let (host, rest) = tail.split_once("==").unwrap_or((tail, ""));
                self.second(host, rest)
            }
            _ => {
                let day = encode_day(now.div_euclid(86_400));
                let tail = format!("{day}={}={}", address.domain(), address.local());
                format!("SRS0={}={tail}", self.hash(&tail))
            }
        };
        let rewritten = format!("{local}@{}", self.domain);
        Address::parse(&rewritten).map_err(|_| SrsError::TooLong)?;
        Ok(rewritten)
    }

    /// The original sender of a rewritten address of ours.
    pub fn reverse(&self, address: &str, now: i64) -> Result<String, SrsError> {
        let address = Address::parse(address).map_err(|_| SrsError::Address)?;
        let (kind, rest) = split(address.local())
            .filter(|_| address.domain() == self.domain)
            .ok_or(SrsError::NotRewritten)?;
        let (hash, tail) = rest.split_once('=').ok_or(SrsError::Forged)?;
        if !self.verify(hash, tail) {
            return Err(SrsError::Forged);
        }
        let original = if kind == "SRS1" {
            let (host, rest) = tail.split_once("==").ok_or(SrsError::Forged)?;
            format!("SRS0={rest}@{host}")
        } else {
            let mut parts = tail.splitn(3, '=');
            let (Some(day), Some(domain), Some(local)) = (parts.next(), parts.next(), parts.next()) else {
                return Err(SrsError::Forged);
            };
            let made = decode_day(day).ok_or(SrsError::Forged)?;
            let age = (now.div_euclid(86_400) - made).rem_euclid(DAY_CYCLE);
            // A clock that is a day behind is no reason to lose a bounce.
            if age > MAX_AGE_DAYS && age != DAY_CYCLE - 1 {
                return Err(SrsError::Expired);
            }
            format!("{local}@{domain}")
        };
        Address::parse(&original).map_err(|_| SrsError::Forged)?;
        Ok(original)
    }

    fn second(&self, host: &str, rest: &str) -> String {
        let tail = format!("{host}=={rest}");
        format!("SRS1={}={tail}", self.hash(&tail))
    }

    fn hash(&self, tail: &str) -> String {
        self.keys.first().map(|key| hash_with(key, tail)).unwrap_or_default()
    }

    fn verify(&self, hash: &str, tail: &str) -> bool {
        let hash = hash.to_ascii_lowercase();
        let fits = |key| verify_slices_are_equal(hash_with(key, tail).as_bytes(), hash.as_bytes()).is_ok();
        self.keys.iter().any(fits)
    }
}

/// The kind of a rewritten local part, and what follows it.
fn split(local: &str) -> Option<(&'static str, &str)> {
    let kind = ["SRS0", "SRS1"]
        .into_iter()
        .find(|kind| local.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(kind)))?;
    let rest = local.get(4..)?.strip_prefix(['=', '+', '-'])?;
    Some((kind, rest))
}

/// The first characters of a case-insensitive hash.
fn hash_with(key: &Hmac<Sha256>, tail: &str) -> String {
    let mut mac = key.clone();
    mac.update(tail.to_lowercase().as_bytes());
    let digest = mac.finalize().into_bytes();
    digest.iter().take(HASH_CHARS).map(|byte| digit(i64::from(*byte))).collect()
}

fn digit(value: i64) -> char {
    let index = usize::try_from(value.rem_euclid(32)).unwrap_or_default();
    DIGITS.get(index).copied().map_or('a', char::from)
}

fn encode_day(day: i64) -> String {
    let day = day.rem_euclid(DAY_CYCLE);
    [digit(day / 32), digit(day)].into_iter().collect()
}

fn decode_day(text: &str) -> Option<i64> {
    let value = |byte: u8| {
        let place = DIGITS.iter().position(|digit| *digit == byte.to_ascii_lowercase())?;
        i64::try_from(place).ok()
    };
    match text.as_bytes() {
        [high, low] => Some(value(*high)? * 32 + value(*low)?),
        _ => None,
    }
}
