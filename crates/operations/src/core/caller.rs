//! Callers, and what they may do in which workspace.

use model::{
    AccountId, ApiKeyId, Plan, Role, SessionId, Timestamp, WorkspaceId, audit::CHAT_PREFIX,
    reviews::SendRequest,
};

use crate::core::{
    error::{Error, ErrorKind, Result},
    narrowing::Narrowing,
    operation::Operation,
};

/// Who makes a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A program with an API key.
    Key(ApiKeyId),
    /// An authenticated wallet, in lower case.
    Wallet(String),
    /// A chat that is linked to a mailbox, by its number.
    Chat(String),
    /// A person in the console.
    Person {
        /// The account.
        account: AccountId,
        /// The session.
        session: SessionId,
        /// Whether the account operates this server.
        is_admin: bool,
    },
}

impl Actor {
    /// The id for the audit trail.
    pub fn id(&self) -> &str {
        match self {
            Self::Key(id) => id.as_str(),
            Self::Wallet(address) => address,
            Self::Chat(chat) => chat,
            Self::Person { account, .. } => account.as_str(),
        }
    }
}

/// What a caller authenticates with.
#[derive(Clone, Debug)]
pub enum Credential {
    /// The `x-api-key` header.
    ApiKey(String),
    /// The console's cookie.
    Session(String),
}

/// An authenticated caller.
#[derive(Debug)]
pub struct Caller {
    /// The actor.
    pub actor: Actor,
    /// Its name, for the audit log: of the key, the address of the account, or the title of the chat.
    pub name: Option<String>,
    /// The workspaces the caller can act in; a key has exactly one.
    pub workspaces: Vec<Access>,
    /// The workspace of a call that names none.
    pub chosen: usize,
    pub(crate) expires_at: Option<Timestamp>,
    /// What it may do less than its role.
    pub(crate) narrowing: Narrowing,
    /// Which state of the key this is; a session has one.
    pub(crate) revision: i64,
    /// The hash of the key or session token.
    pub(crate) hash: Option<SecretHash>,
}

/// What a caller may do in one workspace.
#[derive(Clone, Debug)]
pub struct Access {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its name, where known.
    pub name: String,
    /// The caller's role.
    pub role: Role,
    /// The workspace's plan.
    pub plan: Plan,
}

impl Caller {
    /// A wallet in its workspace.
    pub(crate) fn wallet(address: String, access: Access) -> Self {
        Self {
            actor: Actor::Wallet(address),
            name: None,
            workspaces: vec![access],
            chosen: 0,
            expires_at: None,
            narrowing: Narrowing::default(),
            revision: 0,
            hash: None,
        }
    }

    /// A chat that is linked to a mailbox of a workspace.
    pub(crate) fn chat(chat: i64, title: Option<String>, access: Access) -> Self {
        Self { actor: Actor::Chat(chat_id(chat)), name: title, ..Self::wallet(String::new(), access) }
    }

    /// A person who follows a link that was sent to them, in the workspace that it is about.
    pub(crate) fn by_link(
        account: AccountId,
        email: String,
        (workspace, role, plan): (WorkspaceId, Role, Plan),
    ) -> Self {
        let actor = Actor::Person { account, session: SessionId::from(""), is_admin: false };
        let access = Access { workspace, name: String::new(), role, plan };
        Self { actor, name: Some(email), ..Self::wallet(String::new(), access) }
    }

    /// Whether the caller's scopes and mailboxes allow an operation.
    pub fn reaches(&self, operation: &Operation) -> bool {
        self.narrowing.lack(operation).is_none()
    }

    /// The caller as the requester of a message that is charged with the given credits.
    pub(crate) fn request(&self, credits: i64, now: Timestamp) -> SendRequest {
        let session = match &self.actor {
            Actor::Person { session, .. } => Some(session.clone()),
            _ => None,
        };
        SendRequest {
            by: self.actor.id().to_owned(),
            name: self.name.clone(),
            session,
            credits,
            charged_at: (credits > 0).then_some(now),
        }
    }

    /// The access of a call: to the named workspace, or to the chosen one.
    pub fn access(&self, named: Option<&str>) -> Result<&Access> {
        let found = match named {
            Some(id) => self.workspaces.iter().find(|access| access.workspace.as_str() == id),
            None => self.workspaces.get(self.chosen),
        };
        found.ok_or_else(|| Error::new(ErrorKind::WorkspaceScopeDenied))
    }
}

/// The id of a chat as an actor.
pub(crate) fn chat_id(chat: i64) -> String {
    format!("{CHAT_PREFIX}{chat}")
}

/// The hash of a secret, as it is stored.
pub(crate) type SecretHash = [u8; 32];
