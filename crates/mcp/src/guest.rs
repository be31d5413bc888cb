//! The authenticated sender of a message: what every tool call needs to know about its caller.

use std::sync::Arc;

use operations::Caller;

use crate::profile::Profile;

/// The sender of a message, as the door authenticated it.
#[derive(Clone)]
pub(crate) struct Guest {
    /// The API key itself: calls of the API are made with it.
    pub(crate) key: Arc<str>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) profile: Profile,
}
