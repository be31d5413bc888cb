//! The service's side of SMTP and LMTP: calls operations, and turns their results into replies.

use std::{path::PathBuf, time::Duration};

use bytes::Bytes;
use mail::smtp::{Client, ForwardPath, Protocol, Reception, Reply, ReversePath, TransactionRecord};
use model::emails::InboundProvider;
use operations::{
    App,
    inbound::{self, Arrival, ReceivedMessage, Recipient, Refusal},
    mail_log,
};

/// The service as SMTP sees it.
pub struct ServiceReception {
    app: App,
    /// The folders that messages are stored in, if on this machine.
    folders: Vec<PathBuf>,
}

const TOO_LARGE: Reply = Reply::new(552, "5.3.4", "The message is larger than this server takes");
const NO_ROOM: Reply = Reply::new(452, "4.3.1", "There is no room on this server now");

impl ServiceReception {
    /// Receives into a service; free space is checked in these folders.
    pub fn new(app: App, folders: Vec<PathBuf>) -> Self {
        Self { app, folders }
    }

    /// Whether the disks have room for the largest message and its overhead.
    fn has_room(&self) -> bool {
        let needed = self.app.settings().max_message_bytes.saturating_mul(3) / 2;
        let free = |folder: &PathBuf| {
            // If the free space is unknown, writing will tell.
            rustix::fs::statvfs(folder).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
        };
        self.folders.iter().all(|folder| free(folder) >= needed)
    }

    /// The operator's address on the first domain, for `<postmaster>` without a domain.
    fn postmaster(&self) -> String {
        let domain = self.app.settings().hosted_domains.first();
        format!("postmaster@{}", domain.map_or("localhost", String::as_str))
    }
}

impl Reception for ServiceReception {
    type Recipient = Recipient;
    /// The stored message, if it was accepted.
    type Note = Option<ReceivedMessage>;

    async fn mail(&self, _: &Client, _: &ReversePath, size: Option<u64>) -> Result<(), Reply> {
        if size.is_some_and(|size| size > self.app.settings().max_message_bytes) {
            return Err(TOO_LARGE);
        }
        if self.has_room() { Ok(()) } else { Err(NO_ROOM) }
    }

    async fn rcpt(&self, _: &Client, from: &ReversePath, to: &ForwardPath) -> Result<Recipient, Reply> {
        let from = from.as_str();
        let to = match to {
            ForwardPath::Postmaster => self.postmaster(),
            ForwardPath::Address(address) => address.as_str().to_owned(),
        };
        inbound::route(&self.app, from, &to).await.map_err(|refusal| reply(&refusal))
    }

    async fn data(
        &self,
        client: &Client,
        from: ReversePath,
        recipients: Vec<Recipient>,
        message: Bytes,
    ) -> (Vec<Result<String, Reply>>, Option<ReceivedMessage>) {
        let count = recipients.len();
        let provider = match client.protocol {
            Protocol::Lmtp => InboundProvider::MailApi,
            Protocol::Smtp | Protocol::Esmtp => InboundProvider::EdgeRouting,
        };
        // Behind another mail server, the client address says nothing about the sender.
        let checked = client.protocol != Protocol::Lmtp;
        let arrival = Arrival {
            provider: Some(provider),
            from: from.as_str().map(ToOwned::to_owned),
            recipients,
            raw: message,
            client: checked.then(|| inbound::Client {
                address: client.address.ip(),
                helo: client.helo.clone().unwrap_or_default(),
            }),
        };
        match inbound::receive(&self.app, arrival).await {
            Ok(received) => {
                let answers = received.emails.iter().map(|outcome| match outcome {
                    Ok(id) => Ok(format!("Stored as {id}")),
                    Err(refusal) => Err(reply(refusal)),
                });
                (answers.collect(), Some(received))
            }
            Err(refusal) => ((0..count).map(|_| Err(reply(&refusal))).collect(), None),
        }
    }

    fn ended(
        &self,
        client: &Client,
        record: TransactionRecord,
        note: Option<Option<ReceivedMessage>>,
        took: Duration,
    ) {
        for (reason, count) in &record.refused {
            metrics::counter!("smtp_recipients_refused_total", "reason" => *reason).increment(*count);
        }
        mail_log::received(client, &record, note.flatten().as_ref(), took);
    }
}

fn reply(refusal: &Refusal) -> Reply {
    Reply::new(refusal.code, refusal.enhanced, refusal.text).because(refusal.reason())
}
