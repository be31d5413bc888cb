//! Entries of the audit log: those of calls, and those of what is no call, such as a log-in or a command of the operator.

use model::{
    accounts::Account,
    audit::{OPERATOR, SERVICE},
};
use store::audit::AuditEntry;

use crate::core::{
    app::App,
    call::Call,
    caller::{Caller, chat_id},
    request_info::RequestInfo,
};

/// Who makes a change, and from where.
#[derive(Clone, Debug)]
pub struct Author {
    actor: String,
    name: Option<String>,
    address: Option<String>,
    request_id: String,
    subject: String,
}

impl Author {
    /// An authenticated caller.
    pub fn caller(caller: &Caller, request: &RequestInfo) -> Self {
        Self::new(caller.actor.id(), caller.name.as_deref(), request)
    }

    /// An actor by its id and name.
    fn new(id: &str, name: Option<&str>, request: &RequestInfo) -> Self {
        Self {
            actor: id.to_owned(),
            name: name.map(ToOwned::to_owned),
            address: request.address.map(|address| address.to_string()),
            request_id: request.id.clone(),
            subject: request.subject.clone(),
        }
    }

    /// A chat, by its number and title.
    pub(crate) fn chat(chat: i64, title: &str, request: &RequestInfo) -> Self {
        Self::new(&chat_id(chat), Some(title), request)
    }

    /// A person on the command line of the server, by the name of their user there.
    pub fn operator(user: Option<String>, command: impl Into<String>) -> Self {
        Self {
            actor: OPERATOR.to_owned(),
            name: user.clone(),
            address: user,
            request_id: String::new(),
            subject: command.into(),
        }
    }

    /// The service itself.
    pub(crate) fn service(work: &str) -> Self {
        let (actor, subject) = (SERVICE.to_owned(), work.to_owned());
        Self { actor, name: None, address: None, request_id: String::new(), subject }
    }
}

impl Call {
    /// Who makes the call.
    pub(crate) fn author(&self) -> Author {
        Author::caller(&self.caller, &self.request)
    }
}

impl App {
    /// An entry for a change that a person makes to their account.
    pub(crate) fn account_entry(
        &self,
        account: &Account,
        request: &RequestInfo,
        operation: &str,
    ) -> AuditEntry {
        self.audit_entry(&Author::new(account.id.as_str(), Some(&account.email), request), operation)
    }

    /// An entry for a change that is made now.
    pub(crate) fn audit_entry(&self, author: &Author, operation: &str) -> AuditEntry {
        let Author { actor, name, address, request_id, subject } = author.clone();
        AuditEntry {
            at: self.now(),
            id: self.new_uuid().simple().to_string(),
            actor,
            actor_name: name,
            address,
            operation: operation.to_owned(),
            subject,
            request_id,
        }
    }
}
