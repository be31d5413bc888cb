//! Documents that a workspace knows.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DocumentId, Timestamp, emails::named};

/// Bytes of a document.
pub const MAX_DOCUMENT_BYTES: usize = 10 << 20;

named! {
    /// The type of a document.
    DocumentType {
        /// Plain text.
        Text "text",
        /// Markdown.
        Markdown "markdown",
        /// HTML.
        Html "html",
        /// PDF.
        Pdf "pdf",
        /// An email in its raw form (RFC 5322).
        Eml "eml",
    }
}

impl DocumentType {
    /// The media type of its bytes.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain",
            Self::Markdown => "text/markdown",
            Self::Html => "text/html",
            Self::Pdf => "application/pdf",
            Self::Eml => "message/rfc822",
        }
    }
}

named! {
    /// The indexing status of a document.
    DocumentStatus {
        /// It is being indexed.
        Indexing "indexing",
        /// All of it can be recalled.
        Ready "ready",
        /// Its text could not be read.
        Failed "failed",
    }
}

/// A document.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Document {
    /// Its id.
    pub id: DocumentId,
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: DocumentType,
    /// `indexing`, `ready` or `failed`.
    pub status: DocumentStatus,
    /// Why it failed.
    pub last_error: Option<String>,
    /// Passages of its text; 0 until it was read.
    pub chunk_count: i64,
    /// Passages that can be recalled.
    pub chunks_done: i64,
    /// Its size in bytes.
    pub size: i64,
    /// The SHA-256 of its bytes.
    pub sha256: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// When its status last changed.
    pub updated_at: Timestamp,
}

/// A new document: its bytes as base64, or its text.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewDocument {
    /// Its name, such as the file name.
    #[garde(length(chars, min = 1, max = 200))]
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: DocumentType,
    /// Its bytes as base64; at most 10 MiB.
    #[serde(default)]
    pub content: Option<String>,
    /// Its text, instead of `content`; not for PDF.
    #[serde(default)]
    pub text: Option<String>,
}

/// Which documents to list.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct DocumentQuery {
    /// Documents per page.
    #[garde(range(min = 1, max = 100))]
    #[serde(default = "crate::emails::twenty_five")]
    pub limit: i64,
    /// The `next_cursor` of the previous page.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub cursor: Option<String>,
}

/// A page of documents, newest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DocumentPage {
    /// The documents.
    pub documents: Vec<Document>,
    /// Whether there are more.
    pub has_more: bool,
    /// The cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// The result of verifying a document.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DocumentCheck {
    /// Whether everything is intact.
    pub ok: bool,
    /// Whether the stored bytes are unchanged.
    pub content_ok: bool,
    /// Whether every passage is indexed.
    pub index_ok: bool,
    /// Passages that are being re-embedded for another model.
    pub waiting: i64,
    /// The problems found.
    pub problems: Vec<String>,
}
