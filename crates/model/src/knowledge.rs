//! Documents that a workspace knows.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DocumentId, Timestamp, emails::named};

/// Bytes of a document.
pub const MAX_DOCUMENT_BYTES: usize = 10 << 20;

named! {
    /// What a document is written in.
    DocumentType {
        /// Plain text.
        Text "text",
        /// Markdown.
        Markdown "markdown",
        /// HTML.
        Html "html",
        /// PDF.
        Pdf "pdf",
        /// A mail, as it went over the wire.
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
    /// How far a document is known.
    DocumentStatus {
        /// It is being read.
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
    /// What it is written in.
    #[serde(rename = "type")]
    pub kind: DocumentType,
    /// `indexing`, `ready` or `failed`.
    pub status: DocumentStatus,
    /// Why it failed.
    pub last_error: Option<String>,
    /// Pieces of its text; 0 until it was read.
    pub chunk_count: i64,
    /// Pieces that can be recalled.
    pub chunks_done: i64,
    /// Its bytes.
    pub size: i64,
    /// The SHA-256 of its bytes.
    pub sha256: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
}

/// A document to be added: its bytes in base64, or its text.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewDocument {
    /// Its name, such as that of the file.
    #[garde(length(chars, min = 1, max = 200))]
    pub name: String,
    /// What it is written in.
    #[serde(rename = "type")]
    pub kind: DocumentType,
    /// Its bytes in base64; at most 10 MiB of them.
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
    /// Documents a page.
    #[garde(range(min = 1, max = 100))]
    #[serde(default = "crate::emails::twenty_five")]
    pub limit: i64,
    /// The `next_cursor` of the page before.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub cursor: Option<String>,
}

/// A page of documents, the newest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DocumentPage {
    /// The documents.
    pub documents: Vec<Document>,
    /// Whether there are more.
    pub has_more: bool,
    /// What asks for the next page.
    pub next_cursor: Option<String>,
}

/// What a look at a document found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DocumentCheck {
    /// Whether everything is as it should be.
    pub ok: bool,
    /// Whether the stored bytes are those that were added.
    pub content_ok: bool,
    /// Whether each piece of the text is there and can be found.
    pub index_ok: bool,
    /// Pieces whose vectors are being made anew for another model.
    pub waiting: i64,
    /// What is wrong.
    pub problems: Vec<String>,
}
