//! The gates that need neither a store nor credits: plan, kind of credential, role, scope.

use std::collections::BTreeSet;

use model::{Plan, Role};

use crate::core::{
    caller::{Actor, Caller},
    error::{Error, ErrorKind, Result},
    narrowing::{Lack, Narrowing},
    operation::Operation,
};

/// All errors that admission can refuse an operation with, found by running its gates for every kind of caller.
pub fn gate_errors(operation: &Operation) -> BTreeSet<ErrorKind> {
    // A person may be a member of no workspace, and a key may belong to another workspace than the named one.
    let mut kinds = BTreeSet::from([ErrorKind::WorkspaceScopeDenied, ErrorKind::RateLimited]);
    let person = Actor::Person { account: "".into(), session: "".into(), is_admin: false };
    for actor in [Actor::Key("".into()), person] {
        for plan in Plan::ALL {
            let refusals = Role::ALL.into_iter().map(|role| check_rights(operation, &actor, plan, role));
            kinds.extend(refusals.filter_map(Result::err).map(|refused| refused.kind()));
        }
    }
    // Only keys are narrowed.
    if !operation.console_only {
        let refusals = Narrowing::extremes().into_iter().map(|narrowing| check_scope(operation, &narrowing));
        kinds.extend(refusals.filter_map(Result::err).map(|refused| refused.kind()));
    }
    kinds
}

/// Plan, kind of credential, role, and scope.
pub(crate) fn check_gates(operation: &Operation, caller: &Caller, plan: Plan, role: Role) -> Result<()> {
    check_rights(operation, &caller.actor, plan, role)?;
    check_scope(operation, &caller.narrowing)
}

/// What a narrowed key may do less than its role.
fn check_scope(operation: &Operation, narrowing: &Narrowing) -> Result<()> {
    let Some(lack) = narrowing.lack(operation) else { return Ok(()) };
    let fix = match lack {
        Lack::Scope(scopes) => {
            let names: Vec<String> = scopes.iter().map(|scope| format!("`{}`", scope.as_str())).collect();
            format!("This needs a key with the scope {}. GET /api/v1/me shows the scopes of yours.", names.join(" or "))
        }
        Lack::Workspace => {
            "This concerns the whole workspace, and your key only some of its mailboxes. Use a key that is not narrowed to \
             mailboxes."
                .to_owned()
        }
    };
    Err(Error::new(ErrorKind::ScopeRequired).with_fix(fix))
}

/// Plan, kind of credential, and role: what the operation needs whatever the caller is narrowed to.
pub(crate) fn check_rights(operation: &Operation, actor: &Actor, plan: Plan, role: Role) -> Result<()> {
    if plan < operation.plan {
        let fix = format!("This needs the {} plan. Move the workspace to it.", operation.plan.display_name());
        return Err(Error::new(ErrorKind::PlanRequired).with_fix(fix));
    }
    if operation.console_only && !matches!(actor, Actor::Person { .. }) {
        return Err(Error::new(ErrorKind::RoleRequired)
            .with_fix("This takes a console session, not an API key. Do it in the console, or log in with POST /api/console/login and send the cookie."));
    }
    if role < operation.role {
        return Err(Error::new(ErrorKind::RoleRequired)
            .with_fix("This needs the admin role. Use an admin key, or ask an admin of the workspace."));
    }
    Ok(())
}
