//! The gates that need neither a store nor credits: plan, kind of credential, role.

use std::collections::BTreeSet;

use model::{Plan, Role};

use crate::core::{
    caller::Actor,
    error::{Error, ErrorKind, Result},
    operation::Operation,
};

/// All errors that admission can refuse an operation with, found by running its gates for every kind of caller.
pub fn gate_errors(operation: &Operation) -> BTreeSet<ErrorKind> {
    // A person may be a member of no workspace, and a key may belong to another workspace than the named one.
    let mut kinds = BTreeSet::from([ErrorKind::WorkspaceScopeDenied, ErrorKind::RateLimited]);
    let person = Actor::Person { account: "".into(), session: "".into(), is_admin: false };
    for actor in [Actor::Key("".into()), person] {
        for plan in Plan::ALL {
            let refusals = Role::ALL.into_iter().map(|role| check_gates(operation, &actor, plan, role));
            kinds.extend(refusals.filter_map(Result::err).map(|refused| refused.kind()));
        }
    }
    kinds
}

/// Plan, kind of credential, and role.
pub(crate) fn check_gates(operation: &Operation, actor: &Actor, plan: Plan, role: Role) -> Result<()> {
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
