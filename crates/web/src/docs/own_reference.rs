//! The reference of this service, read from its own OpenAPI document.

use std::sync::LazyLock;

use super::reference::Reference;
use crate::openapi::document;

/// What the pages are made from.
pub(super) static REFERENCE: LazyLock<Reference> = LazyLock::new(|| Reference::new(document()));
