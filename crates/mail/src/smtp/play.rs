//! A conversation without a network and without waiting, for tests and fuzzing.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use bytes::Bytes;

use super::{Client, ForwardPath, Protocol, ReversePath, Session, Settings, Step};

/// What came of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// Everything that was replied, from the greeting on.
    pub replies: Vec<u8>,
    /// The messages that were taken, each with its sender and its recipients.
    pub messages: Vec<(ReversePath, Vec<ForwardPath>, Bytes)>,
    /// Whether the session was closed.
    pub closed: bool,
}

/// Plays a client that sends these pieces, each after all replies to those before it, to a server that takes
/// everything. TLS is spoken in the clear.
pub fn play<'a>(
    settings: &Arc<Settings>,
    protocol: Protocol,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Played {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 25));
    let mut session = Session::new(settings.clone(), Client::new(address, protocol));
    let mut played = Played::default();
    session.greet();
    for piece in pieces {
        session.input().extend_from_slice(piece);
        advance(&mut session, &mut played);
    }
    played.replies.append(session.output());
    played
}

/// Cuts bytes into pieces of these sizes, over and over; none for no sizes. Together with [`play`] this is all that a
/// fuzz target needs.
pub fn cut<'a>(bytes: &'a [u8], sizes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = bytes;
    let mut sizes = sizes.iter().cycle();
    std::iter::from_fn(move || {
        let size = usize::from(*sizes.next()?).clamp(1, rest.len().max(1));
        let (piece, tail) = rest.split_at_checked(size)?;
        rest = tail;
        Some(piece)
    })
}

fn advance(session: &mut Session<ForwardPath>, played: &mut Played) {
    loop {
        match session.step() {
            Step::Read => return,
            Step::Pause(_) => {}
            Step::Mail(_) => session.answer_mail(Ok(())),
            Step::Rcpt(path) => session.answer_rcpt(Ok(path)),
            Step::Message(envelope) => {
                let answers = vec![Ok("Taken".to_owned()); envelope.recipients.len()];
                played.messages.push((envelope.from, envelope.recipients, envelope.message));
                session.answer_message(answers);
            }
            Step::StartTls => session.secured(crate::Encryption::UNKNOWN),
            Step::Close { .. } => {
                played.closed = true;
                session.input().clear();
                return;
            }
        }
    }
}
