//! Traces: the spans of the service, exported by OTLP over HTTP. Only with the feature `opentelemetry`.
//!
//! Spans have ids, names of operations and statuses. Log lines stay in the log: they would bring addresses along.

use std::{fmt, pin::Pin, time::Duration};

use axum::http::HeaderMap;
use opentelemetry::{propagation::TextMapPropagator, trace::TracerProvider as _};
use opentelemetry_http::{
    Bytes, HeaderExtractor, HttpClient, HttpError, Request, Response, ResponseBodyTooLarge,
};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{SdkTracer, SdkTracerProvider},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::{
    config::Telemetry,
    failure::{Failure, Result},
};

/// How long the collector may take for a batch, and how long it is waited for at the end.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest answer of a collector that is read.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Where a collector takes spans.
const PATH: &str = "/v1/traces";

/// Exports spans until it is dropped, which waits a little for the last of them. Not to be dropped within a runtime.
pub struct Exporter {
    provider: SdkTracerProvider,
}

impl Exporter {
    /// Begins to export. It does so from a thread of its own, which keeps a bounded number of spans.
    pub fn start(telemetry: &Telemetry) -> Result<Self> {
        let cannot = |error: &dyn fmt::Display| Failure::new(format!("Traces cannot be exported: {error}"));
        let mut endpoint = telemetry.endpoint.clone();
        if endpoint.path() == "/" {
            endpoint.set_path(PATH);
        }
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client::new().map_err(|error| cannot(&error))?)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .with_timeout(EXPORT_TIMEOUT)
            .build()
            .map_err(|error| cannot(&error))?;
        let resource = Resource::builder().with_service_name(telemetry.service_name.clone()).build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        Ok(Self { provider })
    }

    /// What makes spans for it.
    pub fn tracer(&self) -> SdkTracer {
        self.provider.tracer(env!("CARGO_PKG_NAME"))
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // A collector that is away loses the last spans, as it did those before.
        let _ = self.provider.shutdown_with_timeout(EXPORT_TIMEOUT);
    }
}

/// Lets the span of a request go on with the trace that its caller names in `traceparent`.
pub fn continue_trace(span: &Span, headers: &HeaderMap) {
    if headers.contains_key("traceparent") {
        let caller = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
        // Fails only where nothing is exported.
        let _ = span.set_parent(caller);
    }
}

/// Brings batches to the collector. The thread that exports belongs to no runtime, so this has one.
struct Client {
    runtime: tokio::runtime::Runtime,
    http: reqwest::Client,
}

impl Client {
    fn new() -> std::result::Result<Self, HttpError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let http = reqwest::Client::builder()
            .timeout(EXPORT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            // Nothing looks after connections between two batches.
            .pool_max_idle_per_host(0)
            .build()?;
        Ok(Self { runtime, http })
    }

    async fn send(&self, request: Request<Bytes>) -> std::result::Result<Response<Bytes>, HttpError> {
        let mut answer = self.http.execute(request.try_into()?).await?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(ResponseBodyTooLarge::new().into());
            }
            body.extend_from_slice(&chunk);
        }
        let mut response = Response::builder().status(answer.status()).body(Bytes::from(body))?;
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        Ok(response)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl HttpClient for Client {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = std::result::Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move { self.runtime.block_on(self.send(request)) })
    }
}
