//! The endpoints under /api/v1, one file per resource. A handler only calls its operation.

mod affiliate;
mod api_keys;
mod domains;
mod drafts;
mod emails;
pub(crate) mod events;
mod folders;
mod labels;
mod mailboxes;
mod members;
mod memory;
mod paths;
mod scheduled_sends;
mod sending;
mod telegram;
mod threads;
mod usage;
mod webhooks;
mod workspaces;

use crate::Endpoint;

/// All endpoints, in the order of the documentation.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    [
        workspaces::endpoints(),
        usage::endpoints(),
        members::endpoints(),
        domains::endpoints(),
        mailboxes::endpoints(),
        folders::endpoints(),
        labels::endpoints(),
        emails::endpoints(),
        sending::endpoints(),
        drafts::endpoints(),
        scheduled_sends::endpoints(),
        threads::endpoints(),
        events::endpoints(),
        webhooks::endpoints(),
        telegram::endpoints(),
        memory::endpoints(),
        affiliate::endpoints(),
        api_keys::endpoints(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
