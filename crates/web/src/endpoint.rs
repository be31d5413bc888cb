//! An endpoint: a typed handler bound to an operation, a method and a path.

use std::{convert::Infallible, pin::Pin, sync::Arc};

use axum::{body::Bytes, http::Method, routing::MethodFilter};
use futures_util::Stream;
use operations::{Answer, App, Call, Error, Operation, Result, attachments::Download};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::{
    input::{Input, InputDescription, RawInput},
    reply::Reply,
    request_metrics::RequestMetrics,
};

type Running = Pin<Box<dyn Future<Output = Result<Reply>> + Send>>;
/// A handler whose input was read and checked.
pub(crate) type Prepared = Box<dyn FnOnce(App, Arc<Call>) -> Running + Send>;

/// What an endpoint responds with, for the OpenAPI document.
pub(crate) enum Output {
    /// Nothing.
    Empty,
    /// JSON of this shape.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// The bytes of a file.
    File,
    /// Server-sent events of this shape.
    Events(fn(&mut SchemaGenerator) -> Schema),
    /// JSON of the first shape, or server-sent events of the second if the client asks for them.
    Either(fn(&mut SchemaGenerator) -> Schema, fn(&mut SchemaGenerator) -> Schema),
}

type Prepare = Box<dyn Fn(&RawInput) -> Result<Prepared> + Send + Sync>;

/// One route of one operation.
pub struct Endpoint {
    /// The operation.
    pub operation: &'static Operation,
    /// The method.
    pub method: Method,
    /// The path, with parameters in braces.
    pub path: &'static str,
    /// The tag in the documentation.
    pub tag: &'static str,
    /// The media types of its body; empty when it takes none.
    pub(crate) body_types: &'static [&'static str],
    /// Whether the body is optional.
    pub(crate) body_optional: bool,
    pub(crate) describe_input: fn(&mut SchemaGenerator) -> InputDescription,
    pub(crate) output: Output,
    pub(crate) metrics: RequestMetrics,
    prepare: Prepare,
}

impl Endpoint {
    /// Binds a handler.
    pub(crate) fn new<I, O, H, F>(
        tag: &'static str,
        method: Method,
        path: &'static str,
        operation: &'static Operation,
        handler: H,
    ) -> Self
    where
        I: Input,
        O: Serialize + JsonSchema,
        H: Fn(App, Arc<Call>, I) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<O>> + Send + 'static,
    {
        let empty = operation.answer == Answer::Empty;
        let output = if empty { Output::Empty } else { Output::Json(SchemaGenerator::subschema_for::<O>) };
        let handler = move |app, call, input| {
            let running = handler(app, call, input);
            async move {
                let output = running.await?;
                let bytes = if empty { Ok(Vec::new()) } else { serde_json::to_vec(&output) };
                bytes.map(Reply::Json).map_err(Error::internal)
            }
        };
        Self::bind(tag, method, path, operation, output, handler)
    }

    /// Binds a handler that responds with a file.
    pub(crate) fn download<I, H, F>(
        tag: &'static str,
        path: &'static str,
        operation: &'static Operation,
        handler: H,
    ) -> Self
    where
        I: Input,
        H: Fn(App, Arc<Call>, I) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Download>> + Send + 'static,
    {
        let handler = move |app, call, input| {
            let running = handler(app, call, input);
            async move { running.await.map(|download| Reply::File(download, None)) }
        };
        Self::bind(tag, Method::GET, path, operation, Output::File, handler)
    }

    /// Binds a handler that responds with a stream of events.
    pub(crate) fn stream<E, I, H, F, S>(
        tag: &'static str,
        path: &'static str,
        operation: &'static Operation,
        handler: H,
    ) -> Self
    where
        E: JsonSchema,
        I: Input,
        H: Fn(App, Arc<Call>, I) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<S>> + Send + 'static,
        S: Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
    {
        let handler = move |app, call, input| {
            let running = handler(app, call, input);
            async move { running.await.map(|stream| Reply::Events(Box::pin(stream))) }
        };
        let output = Output::Events(SchemaGenerator::subschema_for::<E>);
        Self::bind(tag, Method::GET, path, operation, output, handler)
    }

    /// Binds a handler that responds with JSON, or with a stream if the client asks for one.
    pub(crate) fn either<O, E, I, H, F>(
        tag: &'static str,
        method: Method,
        path: &'static str,
        operation: &'static Operation,
        handler: H,
    ) -> Self
    where
        O: JsonSchema,
        E: JsonSchema,
        I: Input,
        H: Fn(App, Arc<Call>, I) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Reply>> + Send + 'static,
    {
        let output = Output::Either(SchemaGenerator::subschema_for::<O>, SchemaGenerator::subschema_for::<E>);
        Self::bind(tag, method, path, operation, output, handler)
    }

    fn bind<I, H, F>(
        tag: &'static str,
        method: Method,
        path: &'static str,
        operation: &'static Operation,
        output: Output,
        handler: H,
    ) -> Self
    where
        I: Input,
        H: Fn(App, Arc<Call>, I) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Reply>> + Send + 'static,
    {
        let prepare = move |raw: &RawInput| {
            let input = I::read(raw)?;
            let handler = handler.clone();
            let run = move |app, call| -> Running { Box::pin(handler(app, call, input)) };
            Ok(Box::new(run) as Prepared)
        };
        Self {
            operation,
            method,
            path,
            tag,
            body_types: I::BODY_TYPES,
            body_optional: I::BODY_OPTIONAL,
            describe_input: |generator| {
                let mut description = InputDescription::default();
                I::describe(&mut description, generator);
                description
            },
            output,
            metrics: RequestMetrics::new(operation.id),
            prepare: Box::new(prepare),
        }
    }

    /// Reads and checks the input.
    pub(crate) fn prepare(&self, raw: &RawInput) -> Result<Prepared> {
        let prepared = (self.prepare)(raw)?;
        let Some(range) = raw.range.clone() else { return Ok(prepared) };
        Ok(Box::new(move |app, call| {
            Box::pin(async move { prepared(app, call).await?.within(Some(&range)) })
        }))
    }

    /// The method, as axum's router takes it.
    pub(crate) fn filter(&self) -> MethodFilter {
        MethodFilter::try_from(self.method.clone()).unwrap_or(MethodFilter::GET)
    }
}
