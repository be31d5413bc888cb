//! How triagers work: what sets them off, what a model is asked about a mail, and what follows from its answer.
//!
//! A mail that arrives or leaves is put into a queue in the transaction of just that. A worker takes it on for a bounded
//! time, asks the model one question about everything that is wanted (what the mail is about, labels that are
//! instructions, and every triager that it sets off), and stores all that follows in one transaction that nobody else
//! can repeat. What the mail says reaches the model as data, and the answer is text: no part of it is an order to do
//! anything but keep a draft, labels, tasks and a note in this very mailbox.

mod answer;
mod apply;
mod arrival;
mod calendar;
mod context;
mod manual_run;
mod prompt;
pub mod worker;

pub(crate) use self::{arrival::Triage, manual_run::run_now};
