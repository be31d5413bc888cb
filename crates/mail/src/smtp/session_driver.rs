//! Drives a session without a network and without waiting, for tests and fuzzing.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use bytes::Bytes;

use super::{Client, ForwardPath, Protocol, ReversePath, Session, Settings, Step};

/// The result of a driven session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrivenSession {
    /// All replies, from the greeting on.
    pub replies: Vec<u8>,
    /// The accepted messages, each with its sender and its recipients.
    pub messages: Vec<(ReversePath, Vec<ForwardPath>, Bytes)>,
    /// Whether the session was closed.
    pub closed: bool,
}

/// Drives a session with these pieces of input, each after all replies to those before it; everything is accepted. TLS
/// is assumed without a handshake.
pub fn drive_session<'a>(
    settings: &Arc<Settings>,
    protocol: Protocol,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> DrivenSession {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 25));
    let mut session = Session::new(settings.clone(), Client::new(address, protocol));
    let mut driven = DrivenSession::default();
    session.greet();
    for piece in pieces {
        session.input().extend_from_slice(piece);
        advance(&mut session, &mut driven);
    }
    driven.replies.append(session.output());
    driven
}

/// Cuts bytes into pieces of these sizes, repeated; none for no sizes. For fuzz targets, with [`drive_session`].
pub fn split_into_pieces<'a>(bytes: &'a [u8], sizes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = bytes;
    let mut sizes = sizes.iter().cycle();
    std::iter::from_fn(move || {
        let size = usize::from(*sizes.next()?).clamp(1, rest.len().max(1));
        let (piece, tail) = rest.split_at_checked(size)?;
        rest = tail;
        Some(piece)
    })
}

fn advance(session: &mut Session<ForwardPath>, driven: &mut DrivenSession) {
    loop {
        match session.step() {
            Step::Read => return,
            Step::Pause(_) => {}
            Step::Mail(_) => session.answer_mail(Ok(())),
            Step::Rcpt(path) => session.answer_rcpt(Ok(path)),
            Step::Message(envelope) => {
                let answers = vec![Ok("Taken".to_owned()); envelope.recipients.len()];
                driven.messages.push((envelope.from, envelope.recipients, envelope.message));
                session.answer_message(answers);
            }
            Step::StartTls => session.secured(crate::Encryption::UNKNOWN),
            Step::Close { .. } => {
                driven.closed = true;
                session.input().clear();
                return;
            }
        }
    }
}
