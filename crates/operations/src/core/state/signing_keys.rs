//! The keys that mail of a domain is signed with.

use std::sync::Arc;

use mail::sign::Key;

/// Keys with their selectors.
pub(crate) type SigningKeys = Arc<[(String, Key)]>;
