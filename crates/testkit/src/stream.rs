//! Request bodies that are generated while they are sent.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::{Body, Bytes};
use http_body::Frame;

struct StreamedBody<I>(I);

impl<I: Iterator<Item = io::Result<Bytes>> + Unpin> http_body::Body for StreamedBody<I> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(self.0.next().map(|chunk| chunk.map(Frame::data)))
    }
}

/// A body that is generated piece by piece, on demand.
pub fn streamed(chunks: impl Iterator<Item = io::Result<Bytes>> + Send + Unpin + 'static) -> Body {
    Body::new(StreamedBody(chunks))
}

/// A body that never ends, and sends nothing.
pub fn stalled() -> Body {
    Body::new(StalledBody)
}

struct StalledBody;

impl http_body::Body for StalledBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Pending
    }
}
