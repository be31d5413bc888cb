//! One connection: HTTP/1 or HTTP/2, with timeouts for slow clients and a graceful shutdown.

use std::{
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::Body, extract::ConnectInfo};
use bytes::Bytes;
use hyper::{
    Request, Response, Version,
    body::{Body as HttpBody, Frame, Incoming, SizeHint},
    header::{CONNECTION, HeaderValue},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::TcpStream,
    sync::{OwnedSemaphorePermit, watch},
};
use tower::ServiceExt;

use super::{pace::Pace, stream::WatchedStream, upload::Upload};
use crate::shares::Share;

/// Maximum concurrent streams of one HTTP/2 connection.
const MAX_CONCURRENT_STREAMS: u32 = 128;
/// Interval and timeout of HTTP/2 pings.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// The largest request head.
const MAX_HEAD_BYTES: u32 = 64 * 1024;

/// The other end of a connection.
pub(super) struct Peer {
    /// Its address.
    pub(super) address: SocketAddr,
    /// Its permit among all connections.
    pub(super) permit: OwnedSemaphorePermit,
    /// Its share of its client's connections, if those are counted.
    pub(super) share: Option<Share>,
}

/// What all connections of a listener share.
pub(super) struct Connections {
    router: Router,
    protocol: auto::Builder<TokioExecutor>,
}

impl Connections {
    pub(super) fn new(router: Router) -> Self {
        let mut protocol = auto::Builder::new(TokioExecutor::new());
        // `Pace` has the timeouts instead, because it tells an idle connection from a slow head.
        protocol.http1().header_read_timeout(None).max_buf_size(MAX_HEAD_BYTES as usize);
        protocol
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
            .max_header_list_size(MAX_HEAD_BYTES)
            .keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
        Self { router, protocol }
    }

    /// Serves a connection until its end. On shutdown it finishes the calls in flight and accepts no more.
    pub(super) async fn serve(&self, stream: TcpStream, peer: Peer, mut stopping: watch::Receiver<bool>) {
        let _open = OpenConnection::count();
        let _counted = (peer.permit, peer.share);
        let pace = Arc::new(Pace::new());
        let io = TokioIo::new(WatchedStream::new(stream, pace.clone()));
        let calls = pace.clone();
        let service =
            service_fn(move |request| answer(self.router.clone(), peer.address, calls.clone(), request));
        let mut connection = pin!(self.protocol.serve_connection(io, service));
        let mut ending = false;
        loop {
            tokio::select! {
                outcome = connection.as_mut() => {
                    if let Err(error) = outcome {
                        tracing::trace!(%error, "connection failed");
                    }
                    return;
                }
                () = pace.expired() => {
                    metrics::counter!("http_connections_expired_total").increment(1);
                    return;
                }
                _ = stopping.wait_for(|stop| *stop), if !ending => {
                    ending = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

async fn answer(
    router: Router,
    address: SocketAddr,
    pace: Arc<Pace>,
    request: Request<Incoming>,
) -> Result<Response<CountedBody>, std::convert::Infallible> {
    let multiplexed = request.version() == Version::HTTP_2;
    let call = Call::begin(pace.clone(), multiplexed);
    let (mut request, upload) = Upload::take(request);
    request.extensions_mut().insert(ConnectInfo(address));
    let mut response = router.oneshot(request).await?;
    // The rest of a body blocks the next call, except on HTTP/2 streams.
    if let Some(upload) = upload
        && !upload.discard().await
        && !multiplexed
    {
        pace.leave_unread();
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| CountedBody { body, _call: call }))
}

/// A call in flight, until this is dropped.
struct Call(Arc<Pace>);

impl Call {
    fn begin(pace: Arc<Pace>, multiplexed: bool) -> Self {
        pace.begin_call(multiplexed);
        Self(pace)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.end_call();
    }
}

/// The body of a response, whose call ends with it.
struct CountedBody {
    body: Body,
    _call: Call,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Counts itself among the open connections until it is dropped.
struct OpenConnection;

impl OpenConnection {
    fn count() -> Self {
        metrics::counter!("http_connections_total").increment(1);
        metrics::gauge!("http_connections").increment(1.0);
        Self
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        metrics::gauge!("http_connections").decrement(1.0);
    }
}
