//! What an arriving mail is about and whether it is urgent, by simple rules.
//!
//! Words and phrases of four languages carry points for a category or for urgency; the subject counts three times as
//! much as the text. What gathers too few points is `other` and not urgent: a wrong category costs a reader more than
//! none. One pass over the words, so the cost is known whatever a stranger writes.

mod phrases;
mod score;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::Automatic;
use phrases::Signal;
use score::Score;

/// Bytes of the text that are read; the subject matter is near the beginning.
const MAX_TEXT_BYTES: usize = 4096;

/// Bytes of the subject that are read.
const MAX_SUBJECT_BYTES: usize = 1024;

/// How much more the subject counts than the text.
const SUBJECT_FACTOR: i32 = 3;

/// Points that a category needs.
const CATEGORY_POINTS: i32 = 6;

/// Points that urgency needs.
const URGENT_POINTS: i32 = 6;

/// Points from which a message counts as advertising, whatever its headers say.
const BULK_POINTS: i32 = 5;

/// What a mail is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// A customer asks for help: an order, a bill, an account, a complaint.
    CustomerSupport,
    /// Something technical: a bug, an outage, an integration, a security finding.
    Technical,
    /// Somebody wants to do business together.
    Partnership,
    /// Anything else.
    #[default]
    Other,
}

impl Category {
    /// The category's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CustomerSupport => "customer_support",
            Self::Technical => "technical",
            Self::Partnership => "partnership",
            Self::Other => "other",
        }
    }
}

/// What the rules say about a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// What it is about.
    pub category: Category,
    /// Whether it should be read before others.
    pub urgent: bool,
}

/// Sorts a message by its sender's address, its subject and its text.
pub fn classify(sender: &str, subject: &str, text: &str, automatic: Option<Automatic>) -> Class {
    let mut score = Score::default();
    score.add(cut(subject, MAX_SUBJECT_BYTES), SUBJECT_FACTOR);
    score.add(cut(text, MAX_TEXT_BYTES), 1);
    score.add_sender(sender);
    match automatic {
        Some(Automatic::DeliveryReport | Automatic::Complaint | Automatic::Reply) => Class::default(),
        Some(Automatic::Generated | Automatic::List) => of_program(&score),
        None if score.of(Signal::Bulk) >= BULK_POINTS || score::is_program(sender) => of_program(&score),
        None => of_person(&score),
    }
}

/// A program's mail is technical when it reports trouble, and urgent when the trouble is an outage that lasts.
fn of_program(score: &Score) -> Class {
    let incident = score.of(Signal::Incident);
    let technical = score.of(Signal::Technical) + incident >= CATEGORY_POINTS + score.of(Signal::Bulk);
    let category = if technical { Category::Technical } else { Category::Other };
    Class { category, urgent: technical && incident >= URGENT_POINTS && score.of(Signal::Calm) == 0 }
}

fn of_person(score: &Score) -> Class {
    let incident = score.of(Signal::Incident);
    let candidates = [
        (Category::CustomerSupport, score.of(Signal::Support)),
        (Category::Technical, score.of(Signal::Technical) + incident),
        (Category::Partnership, score.of(Signal::Partnership)),
    ];
    // A tie goes to support: a customer is waiting for an answer.
    let best = candidates.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best });
    let category = match best {
        Some((category, points)) if points >= CATEGORY_POINTS => category,
        _ => Category::Other,
    };
    let pressing = score.of(Signal::Urgent) + incident - score.of(Signal::Calm) - score.of(Signal::Bulk);
    Class { category, urgent: pressing >= URGENT_POINTS }
}

/// The beginning of a text, cut between two characters.
fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}
