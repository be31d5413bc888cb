//! What an operation is, declared once beside its function.
//!
//! The meter, the gates, the OpenAPI document and the documentation page all read these declarations.

use model::{CreditClass, Plan, Role};

use crate::core::error::ErrorKind;

/// How a successful call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// With what was asked for.
    Ok,
    /// With what was made.
    Created,
    /// With what was taken on, and may not be finished yet.
    Accepted,
    /// With nothing.
    Empty,
}

impl Answer {
    /// The number that a kept answer is stored with, which is its HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::Ok => 200,
            Self::Created => 201,
            Self::Accepted => 202,
            Self::Empty => 204,
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
    /// The least plan.
    pub plan: Plan,
    /// The least role.
    pub role: Role,
    /// Whether only console sessions may call it.
    pub console_only: bool,
    /// How success is answered.
    pub answer: Answer,
    /// The errors of its own, beside those that every call can meet.
    pub errors: &'static [ErrorKind],
    /// Whether it also answers when the pool is empty, charging what is left.
    pub always_answers: bool,
    /// Whether it reads one thing, so that its answer carries an `ETag`.
    pub tagged: bool,
    /// Whether it takes away what nothing brings back, though its method is not DELETE.
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
            console_only: false,
            answer: Answer::Ok,
            errors: &[],
            always_answers: false,
            tagged: false,
            destructive: false,
        }
    }

    /// An operation that looks something up.
    pub const fn read(id: &'static str, summary: &'static str) -> Self {
        Self::new(id, summary, CreditClass::Read, false)
    }
    /// An operation that changes something.
    pub const fn write(id: &'static str, summary: &'static str) -> Self {
        Self::new(id, summary, CreditClass::Write, true)
    }
    /// An operation that sends a mail, now or later.
    pub const fn send(id: &'static str, summary: &'static str) -> Self {
        let mut operation = Self::new(id, summary, CreditClass::EmailSend, true);
        operation.answer = Answer::Accepted;
        operation
    }
    /// An operation that makes something that lasts.
    pub const fn provision(id: &'static str, summary: &'static str) -> Self {
        Self::new(id, summary, CreditClass::Provision, true).created()
    }
    /// An operation that asks a model for something short.
    pub const fn ai_light(id: &'static str, summary: &'static str) -> Self {
        Self::new(id, summary, CreditClass::AiLight, true)
    }
    /// An operation that makes a model work.
    pub const fn ai_heavy(id: &'static str, summary: &'static str) -> Self {
        Self::new(id, summary, CreditClass::AiHeavy, true)
    }
    /// Changes nothing, whatever it costs.
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
    /// Needs a console session.
    pub const fn console_only(mut self) -> Self {
        self.console_only = true;
        self
    }
    /// Answers with what it made.
    pub const fn created(mut self) -> Self {
        self.answer = Answer::Created;
        self
    }
    /// Answers with nothing.
    pub const fn empty(mut self) -> Self {
        self.answer = Answer::Empty;
        self
    }
    /// Can give these errors of its own.
    pub const fn errors(mut self, errors: &'static [ErrorKind]) -> Self {
        self.errors = errors;
        self
    }
    /// Also answers when the pool is empty.
    pub const fn always_answers(mut self) -> Self {
        self.always_answers = true;
        self
    }
    /// Takes away what nothing brings back.
    pub const fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }
    /// Reads one thing.
    pub const fn tagged(mut self) -> Self {
        self.tagged = true;
        self
    }
}
