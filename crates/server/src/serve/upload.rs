//! The body of a request, which outlives the handler that it was given to.
//!
//! A call may be answered before its body has come: refused by its head, or with an error while it was read. What is
//! left of it then stands between this call and the next one on the connection. A little of it is read and thrown away,
//! so that the connection goes on; with more than that the connection has to end.

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

/// What is read and thrown away of a body that nobody wants: most of them are a small JSON object.
const MAX_DISCARDED_BYTES: u64 = 256 * 1024;
/// How long the rest of a body may take when its answer is ready.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

/// A body that somebody else may read, and that is looked after when the answer is ready.
#[derive(Clone)]
pub(super) struct Upload(Arc<Mutex<Source>>);

struct Source {
    body: Incoming,
    state: State,
    /// Whether the client waits to be told that its body is wanted.
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
    /// Takes the body of a request out of it, and gives it a handle on that body instead.
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

    /// Reads what is left and throws it away, within bounds. True when nothing is left of it.
    pub(super) async fn discard(&self) -> bool {
        tokio::time::timeout(DISCARD_TIMEOUT, self.discard_all()).await.unwrap_or(false)
    }

    async fn discard_all(&self) -> bool {
        let mut left = MAX_DISCARDED_BYTES;
        loop {
            match self.fits(left) {
                Some(true) => {}
                Some(false) => return false,
                None => return true,
            }
            let frame = std::future::poll_fn(|context| self.poll(context)).await;
            let Some(Ok(frame)) = frame else { return frame.is_none() };
            let length = frame.data_ref().map_or(0, Bytes::len) as u64;
            left = left.saturating_sub(length);
        }
    }

    /// Whether the rest may be no more than so many bytes; nothing when there is no rest.
    fn fits(&self, bytes: u64) -> Option<bool> {
        self.with(|source| match source.state {
            State::Ended => None,
            State::Broken => Some(false),
            // To read it would be to ask for it.
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

    /// The lock is held for a moment only: the handler has its answer before the rest is looked at.
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
