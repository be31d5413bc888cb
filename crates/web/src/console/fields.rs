//! The fields of a form, and how they become an operation's input.

use axum::extract::Request;
use garde::Validate;
use operations::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{
    body::{self, BodyLimit},
    json_body::read_json,
};

/// The largest form without files.
const MAX_FORM_BYTES: u64 = 2 * 1024 * 1024;
/// Maximum fields of a form.
const MAX_FIELDS: usize = 5000;

/// The fields of a form.
#[derive(Default, Clone)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads a form from a request body.
    pub(super) async fn read(request: Request) -> Result<Self> {
        let (parts, body) = request.into_parts();
        body::refuse_encoding(&parts.headers)?;
        body::require_type(&parts.headers, &["application/x-www-form-urlencoded"])?;
        let limit = BodyLimit { max: MAX_FORM_BYTES, refusal: ErrorKind::PayloadTooLarge };
        let bytes = body::read(&parts.headers, body, limit).await?;
        Ok(Self::parse(&bytes))
    }

    /// Reads a query string.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let clean = |text: std::borrow::Cow<'_, str>| text.replace('\0', "");
        Self(
            form_urlencoded::parse(bytes)
                .map(|(name, value)| (clean(name), clean(value)))
                .take(MAX_FIELDS)
                .collect(),
        )
    }

    pub(super) fn push(&mut self, name: String, value: String) {
        self.0.push((name, value));
    }

    /// All fields, in their order.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of a field; empty when it is missing.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    /// The value of a field that was filled in.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        Some(self.get(name).trim()).filter(|value| !value.is_empty())
    }

    /// Whether a checkbox is ticked.
    pub(super) fn ticked(&self, name: &str) -> bool {
        !self.get(name).is_empty()
    }

    /// All values of a field.
    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_str()).collect()
    }
}

/// Reads a form into an operation's input, with the checks and errors of the API.
pub(super) fn input<T>(value: &serde_json::Value) -> Result<T>
where
    T: DeserializeOwned + Validate<Context = ()> + JsonSchema,
{
    read_json(&serde_json::to_vec(value).map_err(Error::internal)?)
}
