//! How triagers work: their triggers, the question to the model about a message, and applying its answer.
//!
//! A message that arrives or is sent is queued in the same transaction. A worker claims it for a bounded time, asks
//! the model one question about everything that is wanted (category, labels with instructions, and every triager that
//! it triggers), and applies the answer in one transaction, exactly once. The message reaches the model as data, and
//! the answer is text: it can do nothing but store a draft, labels, tasks and a note in this mailbox.

mod answer;
mod apply;
mod arrival;
mod calendar;
mod context;
mod manual_run;
mod prompt;
pub mod worker;

pub(crate) use self::{arrival::Triage, manual_run::run_now};
