//! A mailbox whose messages all have their own content, behind a service, and what is read in it.

use std::{fmt::Write as _, net::SocketAddr, sync::Arc};

use super::draw::{Draw, Sequence};
use crate::{
    bare::PAGE_SIZE,
    load::Load,
    measured_store::{Engine, MeasuredStore},
    messages::{self, Filling},
    service::Service,
};

const CONNECTIONS: usize = 32;
pub(super) const THREAD_SIZE: usize = 3;
pub(super) const HITS: usize = 20;
/// Words that are in about every third message, by rank.
pub(super) const COMMON_RANKS: (u64, u64) = (20, 60);
/// Words that are in about every two hundredth.
pub(super) const RARE_RANKS: (u64, u64) = (1500, 3000);

/// What a request is about.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Folders,
    Page,
    Message(Draw),
    Thread(Draw),
    Search((u64, u64)),
    /// A search at a home-made server that shows passages as the service does.
    SearchWithPassages((u64, u64)),
}

/// The mailbox of a service.
pub(super) struct FilledMailbox {
    pub(super) store: MeasuredStore,
    pub(super) service: Service,
    pub(super) address: SocketAddr,
    pub(super) mailbox: String,
    pub(super) messages: usize,
}

impl FilledMailbox {
    pub(super) async fn new(engine: Engine, messages: usize) -> Self {
        let store = MeasuredStore::new(engine).await;
        let service = Service::open(&store).await;
        let filling = Filling { messages, indexed: true, distinct: true, thread_size: THREAD_SIZE };
        let mailbox = messages::fill(&service, filling).await;
        let address = service.listen().await;
        Self { store, service, address, mailbox, messages }
    }

    /// The requests of a kind to a server.
    pub(super) fn load(&self, address: SocketAddr, kind: Kind) -> Load {
        let (key, count, sequence) = (self.service.key.clone(), self.messages, Sequence::new());
        let mailbox = format!("/api/v1/mailboxes/{}", self.mailbox);
        let next_request = move |buffer: &mut Vec<u8>| {
            let mut path = mailbox.clone();
            let random = sequence.next();
            let _ = match kind {
                Kind::Folders => write!(path, "/folders"),
                Kind::Page => write!(path, "/emails?limit={PAGE_SIZE}"),
                Kind::Message(draw) => {
                    write!(path, "/emails/{}", messages::email_id(draw.number(random, count)))
                }
                Kind::Thread(draw) => {
                    let number = draw.number(random, count);
                    write!(path, "/threads/{}", messages::thread_id(number, THREAD_SIZE))
                }
                Kind::Search(ranks) => {
                    write!(path, "/search?query={}&limit={HITS}", word_of(ranks, random))
                }
                Kind::SearchWithPassages(ranks) => {
                    write!(path, "/passages?query={}&limit={HITS}", word_of(ranks, random))
                }
            };
            let head = "Accept: application/json\r\nX-API-Key:";
            let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{head} {key}\r\n\r\n");
            buffer.extend_from_slice(request.as_bytes());
        };
        Load {
            address,
            connections: CONNECTIONS,
            next_request: Arc::new(next_request),
            expected_status: 200,
            processes: Vec::new(),
        }
    }
}

/// A word whose rank is between two.
fn word_of((from, to): (u64, u64), random: u64) -> String {
    messages::word(usize::try_from(from + random % (to - from)).unwrap_or_default())
}
