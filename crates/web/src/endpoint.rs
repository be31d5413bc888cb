//! An endpoint: a typed handler bound to an operation, a method and a path.

use std::{pin::Pin, sync::Arc};

use axum::{http::Method, routing::MethodFilter};
use operations::{Answer, App, Call, Error, Operation, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::input::{Input, InputDescription, RawInput};

/// What a handler made: the bytes of the answer.
pub(crate) type Reply = Vec<u8>;
type Running = Pin<Box<dyn Future<Output = Result<Reply>> + Send>>;
/// A handler with its input already read and checked.
pub(crate) type Prepared = Box<dyn FnOnce(App, Arc<Call>) -> Running + Send>;

type Prepare = Box<dyn Fn(&RawInput) -> Result<Prepared> + Send + Sync>;

/// One way to call one operation over HTTP.
pub struct Endpoint {
    /// The operation.
    pub operation: &'static Operation,
    /// The method.
    pub method: Method,
    /// The path, parameters in braces.
    pub path: &'static str,
    /// The group in the documentation.
    pub tag: &'static str,
    pub(crate) takes_body: bool,
    pub(crate) describe_input: fn(&mut SchemaGenerator) -> InputDescription,
    pub(crate) describe_output: Option<fn(&mut SchemaGenerator) -> Schema>,
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
        let prepare = move |raw: &RawInput| {
            let input = I::read(raw)?;
            let handler = handler.clone();
            let run = move |app, call| -> Running {
                Box::pin(async move {
                    let output = handler(app, call, input).await?;
                    if empty { Ok(Vec::new()) } else { serde_json::to_vec(&output).map_err(Error::internal) }
                })
            };
            Ok(Box::new(run) as Prepared)
        };
        Self {
            operation,
            method,
            path,
            tag,
            takes_body: I::TAKES_BODY,
            describe_input: |generator| {
                let mut description = InputDescription::default();
                I::describe(&mut description, generator);
                description
            },
            describe_output: (!empty).then_some(SchemaGenerator::subschema_for::<O>),
            prepare: Box::new(prepare),
        }
    }

    /// Reads and checks the input.
    pub(crate) fn prepare(&self, raw: &RawInput) -> Result<Prepared> {
        (self.prepare)(raw)
    }

    /// The method as the router wants it.
    pub(crate) fn filter(&self) -> MethodFilter {
        MethodFilter::try_from(self.method.clone()).unwrap_or(MethodFilter::GET)
    }
}
