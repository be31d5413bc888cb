//! The body of a request, which outlives its handler.
//!
//! A call may be answered before its body has arrived: refused by its head, or with an error while reading. The
//! rest of the body then precedes the next request on the connection. A small rest is read and discarded, so that
//! the connection can be reused; with a larger one it is closed.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use hyper::{
    Request,
    body::{Body as HttpBody, Frame, Incoming, SizeHint},
    header,
};

/// Maximum bytes discarded of an unread body: most are a small JSON object.
const MAX_DISCARDED_BYTES: u64 = 256 * 1024;
/// Timeout for the rest of a body once the response is ready.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

/// A body that the handler reads, and that is drained when the response is ready.
#[derive(Clone)]
pub(super) struct Upload(Arc<Mutex<Source>>);

struct Source {
    body: Incoming,
    state: State,
    /// Whether the client waits for `100 Continue`.
    on_demand: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Untouched,
    Begun,
    Ended,
    Broken,
}

impl Upload {
    /// Takes the body out of a request, and puts a handle to it in its place.
    pub(super) fn take(request: Request<Incoming>) -> (Request<Body>, Option<Self>) {
        let (parts, body) = request.into_parts();
        if body.is_end_stream() {
            return (Request::from_parts(parts, Body::empty()), None);
        }
        let expects = parts.headers.get(header::EXPECT);
        let on_demand = expects.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let upload = Self(Arc::new(Mutex::new(Source { body, state: State::Untouched, on_demand })));
        (Request::from_parts(parts, Body::new(upload.clone())), Some(upload))
    }

    /// Reads and discards the rest, within bounds. True when nothing is left.
    pub(super) async fn discard(&self) -> bool {
        tokio::time::timeout(DISCARD_TIMEOUT, self.discard_all()).await.unwrap_or(false)
    }

    async fn discard_all(&self) -> bool {
        let mut bytes_left = MAX_DISCARDED_BYTES;
        loop {
            match self.fits(bytes_left) {
                Some(true) => {}
                Some(false) => return false,
                None => return true,
            }
            let frame = std::future::poll_fn(|context| self.poll(context)).await;
            let Some(Ok(frame)) = frame else { return frame.is_none() };
            let length = frame.data_ref().map_or(0, Bytes::len) as u64;
            bytes_left = bytes_left.saturating_sub(length);
        }
    }

    /// Whether the rest can be at most so many bytes; `None` when there is no rest.
    fn fits(&self, bytes: u64) -> Option<bool> {
        self.with(|source| match source.state {
            State::Ended => None,
            State::Broken => Some(false),
            // Reading it would send `100 Continue`.
            State::Untouched if source.on_demand => Some(false),
            State::Untouched | State::Begun if source.body.is_end_stream() => None,
            State::Untouched | State::Begun => Some(bytes > 0 && source.body.size_hint().lower() <= bytes),
        })
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.with(|source| {
            let polled = Pin::new(&mut source.body).poll_frame(context);
            source.state = match &polled {
                Poll::Ready(None) => State::Ended,
                Poll::Ready(Some(Err(_))) => State::Broken,
                Poll::Ready(Some(Ok(_))) | Poll::Pending => State::Begun,
            };
            polled
        })
    }

    /// The lock is short: the handler has returned before the rest is read.
    fn with<T>(&self, work: impl FnOnce(&mut Source) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HttpBody for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.poll(context)
    }
    fn is_end_stream(&self) -> bool {
        self.with(|source| source.body.is_end_stream())
    }
    fn size_hint(&self) -> SizeHint {
        self.with(|source| source.body.size_hint())
    }
}
