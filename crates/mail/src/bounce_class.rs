//! Why a recipient's server did not take a message, in one word: whether its address is dead, or our reputation is bad,
//! or it only has to be tried again.
//!
//! A hard bounce stops all mail to an address, so nothing is one by guesswork: phrases about reputation, rules, quotas
//! and delays are looked for before those about unknown users, and a reply that asks to try again is never one.

mod class;
mod evidence;
mod phrases;
mod providers;
mod recipients;
mod rule;
mod status;
#[cfg(test)]
mod tests;

pub use class::BounceClass;
use evidence::Evidence;
use rule::{Condition, Rule};

/// From the SMTP reply code (`None` when there was no reply, or it is in the text), the enhanced status as `5.1.1`, and
/// the reply's text.
///
/// The text may be one reply, several lines of one, what an attempt recorded, or the diagnostic of a delivery report
/// such as `smtp; 550 5.1.1 User unknown`. A code and a status are read from it where the arguments are missing or say
/// nothing, as `5.0.0` does. Only its first 2 KB count.
pub fn classify(code: Option<u16>, status: Option<&str>, text: &str) -> BounceClass {
    let evidence = Evidence::read(code, status, text);
    let (class, condition) = match by_text(&evidence) {
        Some(rule) => (Some(rule.class), rule.condition),
        None => (status::class_of(&evidence), Condition::Always),
    };
    match class {
        // DNS is asked anew at each attempt: its answer is as good when the report calls itself temporary.
        Some(BounceClass::Hard) if evidence.is_temporary() && condition != Condition::NoReply => {
            BounceClass::Soft
        }
        None if evidence.is_temporary() => BounceClass::Soft,
        class => class.unwrap_or(BounceClass::Unknown),
    }
}

/// The first rule that the text meets: a provider's own ones first. But where a provider's rule says that the address is
/// dead, and the text also speaks of something else, that wins.
fn by_text(evidence: &Evidence) -> Option<&'static Rule> {
    let general = phrases::GROUPS.iter().copied().flatten().find(|rule| rule.applies_to(evidence));
    let provider = providers::GROUPS.iter().copied().flatten().find(|rule| rule.applies_to(evidence));
    match (provider, general) {
        (Some(provider), Some(general)) if provider.class == BounceClass::Hard => {
            Some(if general.class == BounceClass::Hard { provider } else { general })
        }
        _ => provider.or(general),
    }
}
