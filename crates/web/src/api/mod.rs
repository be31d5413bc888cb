//! The endpoints under /api/v1, one file per resource. A handler only calls its operation.

mod affiliate;
mod api_keys;
mod audit;
mod conversations;
mod domains;
mod drafts;
mod emails;
pub(crate) mod events;
mod folders;
mod identity;
mod integrations;
mod knowledge;
mod labels;
mod mailboxes;
mod members;
mod memory;
mod paths;
mod reviews;
mod routes;
mod scheduled_sends;
mod send_policies;
mod sending;
mod suppressions;
mod tasks;
mod telegram;
mod threads;
mod triagers;
mod usage;
mod webhooks;
mod workspaces;

pub(crate) use self::routes::routes;
use crate::Endpoint;

/// All endpoints of the API, in the order of the documentation.
pub fn endpoints() -> Vec<Endpoint> {
    [
        workspaces::endpoints(),
        identity::endpoints(),
        usage::endpoints(),
        members::endpoints(),
        audit::endpoints(),
        domains::endpoints(),
        mailboxes::endpoints(),
        folders::endpoints(),
        labels::endpoints(),
        emails::endpoints(),
        sending::endpoints(),
        drafts::endpoints(),
        scheduled_sends::endpoints(),
        send_policies::endpoints(),
        suppressions::endpoints(),
        reviews::endpoints(),
        threads::endpoints(),
        conversations::endpoints(),
        integrations::endpoints(),
        triagers::endpoints(),
        tasks::endpoints(),
        events::endpoints(),
        webhooks::endpoints(),
        telegram::endpoints(),
        memory::endpoints(),
        knowledge::endpoints(),
        affiliate::endpoints(),
        api_keys::endpoints(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
