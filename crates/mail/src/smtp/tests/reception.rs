//! A reception that knows one domain and remembers what it took.

use std::sync::{Mutex, PoisonError};

use super::*;

/// What was taken: how the client spoke, the sender, the recipients, the content.
pub(crate) type Taken = (Client, ReversePath, Vec<String>, Bytes);

/// A transaction that ended, the size that was noted of its message, and how long it took.
pub(crate) type Told = (TransactionRecord, Option<usize>, Duration);

#[derive(Default)]
pub(crate) struct Memory {
    taken: Mutex<Vec<Taken>>,
    ended: Mutex<Vec<Told>>,
}

impl Memory {
    pub(crate) fn ended(&self) -> Vec<Told> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn taken(&self) -> Vec<Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Reception for Memory {
    type Recipient = String;
    type Note = usize;

    async fn mail(&self, _client: &Client, from: &ReversePath, _size: Option<u64>) -> Result<(), Reply> {
        tokio::task::yield_now().await;
        let blocked = from.address().is_some_and(|address| address.domain() == "blocked.example");
        if blocked { Err(Reply::new(550, "5.7.1", "You are blocked")) } else { Ok(()) }
    }

    async fn rcpt(&self, _client: &Client, _from: &ReversePath, to: &ForwardPath) -> Result<String, Reply> {
        match to {
            ForwardPath::Address(address) if address.domain() != "agents.example" => {
                Err(Reply::new(550, "5.7.1", "We do not relay"))
            }
            _ => Ok(to.to_string()),
        }
    }

    async fn data(
        &self,
        client: &Client,
        from: ReversePath,
        recipients: Vec<String>,
        message: Bytes,
    ) -> (Vec<Result<String, Reply>>, usize) {
        let size = message.len();
        let answers = recipients.iter().map(|recipient| Ok(format!("Kept for {recipient}"))).collect();
        let taken = (client.clone(), from, recipients, message);
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).push(taken);
        (answers, size)
    }

    fn ended(&self, _client: &Client, record: TransactionRecord, note: Option<usize>, took: Duration) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push((record, note, took));
    }
}
