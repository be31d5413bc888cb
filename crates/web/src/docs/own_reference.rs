//! The reference of this service, read from its own OpenAPI document.

use std::sync::LazyLock;

use super::reference::Reference;
use crate::openapi::document;

/// The reference that the pages are generated from.
pub(super) static REFERENCE: LazyLock<Reference> = LazyLock::new(|| Reference::new(document()));
