//! The list of all operations, from which the OpenAPI document, the documentation and the tests are made.

use crate::{
    account::{affiliate, api_keys, identity, members, usage, workspaces},
    agent::{conversations, integrations, tasks, triagers},
    core::{events, operation::Operation},
    inbox::{attachments, email_context, emails, threads},
    mailbox::{domains, folders, labels, mailboxes},
    notify::{telegram, webhooks},
    outbox::{drafts, scheduled_sends, sending},
    recall::{knowledge, memory, search},
};

/// All operations of the service.
pub fn catalog() -> Vec<&'static Operation> {
    [
        identity::OPERATIONS,
        workspaces::OPERATIONS,
        usage::OPERATIONS,
        members::OPERATIONS,
        api_keys::OPERATIONS,
        domains::OPERATIONS,
        mailboxes::OPERATIONS,
        folders::OPERATIONS,
        labels::OPERATIONS,
        emails::OPERATIONS,
        email_context::OPERATIONS,
        attachments::OPERATIONS,
        sending::OPERATIONS,
        drafts::OPERATIONS,
        scheduled_sends::OPERATIONS,
        threads::OPERATIONS,
        triagers::OPERATIONS,
        tasks::OPERATIONS,
        search::OPERATIONS,
        events::OPERATIONS,
        webhooks::OPERATIONS,
        telegram::OPERATIONS,
        affiliate::OPERATIONS,
        memory::OPERATIONS,
        conversations::OPERATIONS,
        integrations::OPERATIONS,
        knowledge::OPERATIONS,
    ]
    .concat()
}
