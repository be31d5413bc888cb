//! The declaration of an operation, beside its function.
//!
//! The meter, the gates, the OpenAPI document and the documentation page all read it.

use model::{CreditClass, Plan, Role, Scope};

use crate::core::error::{Error, ErrorKind, Result};

/// The kind of a successful answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The requested resource.
    Ok,
    /// The created resource.
    Created,
    /// Accepted; it may not be finished yet.
    Accepted,
    /// No content.
    Empty,
}

impl Answer {
    const ALL: [Self; 4] = [Self::Ok, Self::Created, Self::Accepted, Self::Empty];

    /// The number that a stored answer is kept with.
    pub(crate) const fn code(self) -> i64 {
        match self {
            Self::Ok => 200,
            Self::Created => 201,
            Self::Accepted => 202,
            Self::Empty => 204,
        }
    }

    /// The answer that is kept with a number.
    pub(crate) fn from_code(code: i64) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|answer| answer.code() == code);
        found.ok_or_else(|| Error::internal(format!("unknown answer {code}")))
    }
}

/// Which mailboxes an operation concerns, as a key that is narrowed to some of them meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The one that the path names: outside those of the key it does not exist.
    Mailbox,
    /// Those that the caller sees: the operation leaves out all others.
    Visible,
    /// The workspace as a whole: refused to such a key.
    Workspace,
}

impl Reach {
    /// The name in the OpenAPI document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mailbox => "mailbox",
            Self::Visible => "visible",
            Self::Workspace => "workspace",
        }
    }
}

/// One operation of the service.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that readers look up by name")]
pub struct Operation {
    /// Its unique name, the `operationId`.
    pub id: &'static str,
    /// One sentence for the documentation.
    pub summary: &'static str,
    /// What a call costs.
    pub class: CreditClass,
    /// Whether it changes anything.
    pub writes: bool,
    /// The lowest plan.
    pub plan: Plan,
    /// The lowest role.
    pub role: Role,
    /// The scopes of which a narrowed key needs one; empty if it needs none.
    pub scopes: &'static [Scope],
    /// Which mailboxes it concerns.
    pub reach: Reach,
    /// Whether only console sessions may call it.
    pub console_only: bool,
    /// The kind of a successful answer.
    pub answer: Answer,
    /// Errors of its own, beside those that every call can get.
    pub errors: &'static [ErrorKind],
    /// Whether it also answers when the pool is empty, charging what is left.
    pub always_answers: bool,
    /// Whether it reads a single resource, so that its answer carries an `ETag`.
    pub tagged: bool,
    /// Whether it deletes something for good, though its method is not DELETE.
    pub destructive: bool,
}

impl Operation {
    const fn new(id: &'static str, summary: &'static str, class: CreditClass, writes: bool) -> Self {
        Self {
            id,
            summary,
            class,
            writes,
            plan: Plan::Free,
            role: Role::Member,
            scopes: if writes { Scope::Manage.alone() } else { Scope::Read.alone() },
            reach: Reach::Mailbox,
            console_only: false,
            answer: Answer::Ok,
            errors: &[],
            always_answers: false,
            tagged: false,
            destructive: false,
        }
    }

    /// An operation that reads.
    pub const fn read(id: &'static str, summary: &'static str) -> Self {
        Self::new(id, summary, CreditClass::Read, false)
    }
    /// An operation that writes.
    pub const fn write(id: &'static str, summary: &'static str) -> Self {
        Self::new(id, summary, CreditClass::Write, true)
    }
    /// An operation that sends a message, now or later.
    pub const fn send(id: &'static str, summary: &'static str) -> Self {
        let mut operation = Self::new(id, summary, CreditClass::EmailSend, true);
        operation.answer = Answer::Accepted;
        operation.scope(Scope::Send)
    }
    /// An operation that creates something lasting.
    pub const fn provision(id: &'static str, summary: &'static str) -> Self {
        Self::new(id, summary, CreditClass::Provision, true).created()
    }
    /// An operation with a short model request.
    pub const fn ai_light(id: &'static str, summary: &'static str) -> Self {
        Self::new(id, summary, CreditClass::AiLight, true)
    }
    /// An operation with a long model request.
    pub const fn ai_heavy(id: &'static str, summary: &'static str) -> Self {
        Self::new(id, summary, CreditClass::AiHeavy, true)
    }
    /// Writes nothing, whatever it costs.
    pub const fn changes_nothing(mut self) -> Self {
        self.writes = false;
        self
    }
    /// Needs a plan.
    pub const fn plan(mut self, plan: Plan) -> Self {
        self.plan = plan;
        self
    }
    /// Needs a workspace admin.
    pub const fn admin(mut self) -> Self {
        self.role = Role::Admin;
        self
    }
    /// Needs this scope.
    pub const fn scope(mut self, scope: Scope) -> Self {
        self.scopes = scope.alone();
        self
    }
    /// Needs one of these scopes; none if there are none.
    pub const fn any_scope(mut self, scopes: &'static [Scope]) -> Self {
        self.scopes = scopes;
        self
    }
    /// Concerns the mailboxes that the caller sees.
    pub const fn visible(mut self) -> Self {
        self.reach = Reach::Visible;
        self
    }
    /// Concerns the workspace as a whole.
    pub const fn workspace(mut self) -> Self {
        self.reach = Reach::Workspace;
        self
    }
    /// Needs a console session.
    pub const fn console_only(mut self) -> Self {
        self.console_only = true;
        self
    }
    /// Answers with the created resource.
    pub const fn created(mut self) -> Self {
        self.answer = Answer::Created;
        self
    }
    /// Answers without content.
    pub const fn empty(mut self) -> Self {
        self.answer = Answer::Empty;
        self
    }
    /// Can fail with these errors of its own.
    pub const fn errors(mut self, errors: &'static [ErrorKind]) -> Self {
        self.errors = errors;
        self
    }
    /// Also answers when the pool is empty.
    pub const fn always_answers(mut self) -> Self {
        self.always_answers = true;
        self
    }
    /// Deletes something for good.
    pub const fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }
    /// Reads a single resource.
    pub const fn tagged(mut self) -> Self {
        self.tagged = true;
        self
    }
}
