//! Trace export: the service's spans, by OTLP over HTTP. Only with the feature `opentelemetry`.
//!
//! Spans have ids, names of operations and statuses. Log lines are not exported: they contain addresses.

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

/// Timeout of a batch, and of the last export at shutdown.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum bytes read of a collector's response.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// The path where a collector takes spans.
const PATH: &str = "/v1/traces";

/// Exports spans until it is dropped, which waits a little for the last ones. Must not be dropped inside a runtime.
pub struct Exporter {
    provider: SdkTracerProvider,
}

impl Exporter {
    /// Starts exporting, from a thread of its own with a bounded queue of spans.
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

    /// The tracer that creates spans for it.
    pub fn tracer(&self) -> SdkTracer {
        self.provider.tracer(env!("CARGO_PKG_NAME"))
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // If the collector is down, the last spans are lost, like those before.
        let _ = self.provider.shutdown_with_timeout(EXPORT_TIMEOUT);
    }
}

/// Continues the caller's trace, from `traceparent`, in the span of a request.
pub fn continue_trace(span: &Span, headers: &HeaderMap) {
    if headers.contains_key("traceparent") {
        let caller = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
        // Fails only when nothing is exported.
        let _ = span.set_parent(caller);
    }
}

/// Sends batches to the collector. The exporting thread has no runtime, so this has one.
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
            // Nothing polls idle connections between two batches.
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
