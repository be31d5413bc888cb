//! Somebody who has come in by the door: what every call of a tool needs to know of its caller.

use std::sync::Arc;

use operations::Caller;

use crate::profile::Profile;

/// Who sent a message, as the door recognised them.
#[derive(Clone)]
pub(crate) struct Guest {
    /// The key itself: calls of the API are made with it.
    pub(crate) key: Arc<str>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) profile: Profile,
}
