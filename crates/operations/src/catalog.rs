//! The list of all operations, from which the OpenAPI document, the documentation and the tests are made.

use crate::{
    account::{accounts, affiliate, api_keys, audit, identity, members, usage, workspaces},
    agent::{conversations, integrations, tasks, triagers},
    core::{
        error::{Error, Result},
        events,
        operation::Operation,
    },
    inbox::{attachments, email_context, emails, threads},
    mailbox::{domains, folders, labels, mailboxes},
    notify::{telegram, webhooks},
    outbox::{drafts, reviews, scheduled_sends, send_policies, sending, suppressions},
    recall::{knowledge, memory, search},
    upkeep::admin,
};

/// All operations of the service.
pub fn catalog() -> Vec<&'static Operation> {
    [
        identity::OPERATIONS,
        workspaces::OPERATIONS,
        audit::OPERATIONS,
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
        send_policies::OPERATIONS,
        suppressions::OPERATIONS,
        reviews::OPERATIONS,
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

/// What leaves entries in the audit log: the operations that write, and what people, chats, operators and the service do
/// beside them.
pub fn audited() -> Vec<&'static str> {
    let writes = catalog().into_iter().filter(|operation| operation.writes).map(|operation| operation.id);
    let others = [
        accounts::SIGN_UP,
        accounts::LOG_IN,
        accounts::LOG_OUT,
        accounts::LOG_OUT_EVERYWHERE,
        accounts::END_SESSION,
        accounts::ACCEPT_INVITE,
        accounts::CHANGE_PASSWORD,
        accounts::RESET_PASSWORD,
        reviews::expiry::EXPIRE_REVIEW,
        reviews::watching::WATCH.id,
        domains::CHECK_DOMAIN,
        domains::keys::ROTATE_DKIM,
        telegram::LINK_CHAT,
        telegram::UNLINK_CHAT,
        admin::CREATE_ACCOUNT,
        admin::SET_PLAN,
        admin::ADD_PAYOUT,
        admin::IMPORT,
    ];
    writes.chain(others).collect()
}

/// Refuses a name that no entry of the audit log has.
pub fn require_audited(operation: Option<&str>) -> Result<()> {
    match operation {
        Some(name) if !audited().contains(&name) => Err(Error::invalid(
            "operation",
            "expected an operation that changes something, such as createApiKey",
        )),
        _ => Ok(()),
    }
}
