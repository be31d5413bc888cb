//! What narrows an API key: scopes, and mailboxes outside which nothing exists for it.
//!
//! It is part of the cached caller, with the names of its mailboxes: a name that a caller used for a mailbox is resolved
//! here, without the store, and one of another mailbox becomes the name of none. So every operation answers about it as
//! about one that does not exist, since for that operation it does not.

use std::sync::Arc;

use model::{MailboxId, Scope};
use store::{
    mailboxes::MailboxName,
    system::{KeyAccess, MailboxNames},
};

use crate::core::operation::{Operation, Reach};

/// What a caller may do less than its role; the default is nothing less.
#[derive(Clone, Debug, Default)]
pub struct Narrowing {
    scopes: Option<Vec<Scope>>,
    mailboxes: Option<Mailboxes>,
}

#[derive(Clone, Debug)]
struct Mailboxes {
    ids: Arc<[MailboxId]>,
    names: Vec<MailboxNames>,
}

/// What a narrowed caller lacks for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// One of these scopes.
    Scope(&'static [Scope]),
    /// The whole workspace.
    Workspace,
}

impl Narrowing {
    pub(crate) fn of_key(key: &KeyAccess) -> Self {
        let mailboxes = key.mailbox_ids.as_deref().map(|ids| {
            let mut names = key.mailbox_names.clone();
            // The address of a deleted one may be that of another one since.
            names.sort_by_key(|names| names.is_deleted);
            Mailboxes { ids: ids.into(), names }
        });
        Self { scopes: key.scopes.clone(), mailboxes }
    }

    /// A caller without any scope, and one that sees no mailbox.
    pub(crate) fn extremes() -> [Self; 2] {
        let mailboxes = Mailboxes { ids: Arc::new([]), names: Vec::new() };
        [
            Self { scopes: Some(Vec::new()), mailboxes: None },
            Self { scopes: None, mailboxes: Some(mailboxes) },
        ]
    }

    /// What the caller lacks for an operation, if anything.
    pub(crate) fn lack(&self, operation: &Operation) -> Option<Lack> {
        let has = |scopes: &Vec<Scope>| operation.scopes.iter().any(|scope| scopes.contains(scope));
        if !operation.scopes.is_empty() && !self.scopes.as_ref().is_none_or(has) {
            return Some(Lack::Scope(operation.scopes));
        }
        let is_outside = operation.reach == Reach::Workspace && self.mailboxes.is_some();
        is_outside.then_some(Lack::Workspace)
    }

    /// The names of its scopes, separated by spaces; empty without any limit.
    pub(crate) fn scope_names(&self) -> String {
        let scopes = self.scopes.iter().flatten();
        scopes.map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// The mailboxes that the caller sees; `None` for all.
    pub(crate) fn mailbox_ids(&self) -> Option<&Arc<[MailboxId]>> {
        self.mailboxes.as_ref().map(|mailboxes| &mailboxes.ids)
    }

    /// How many mailboxes there are for the caller; `None` for all of the workspace.
    pub(crate) fn mailbox_count(&self) -> Option<i64> {
        let names = &self.mailboxes.as_ref()?.names;
        i64::try_from(names.iter().filter(|names| !names.is_deleted).count()).ok()
    }

    /// The mailbox that a name means for the caller: for a narrowed one by its id, or none.
    pub(crate) fn resolve(&self, name: MailboxName) -> MailboxName {
        let Some(mailboxes) = &self.mailboxes else { return name };
        let found = mailboxes.names.iter().find(|names| match &name {
            MailboxName::PublicId(wanted) => names.public_id == *wanted,
            MailboxName::Id(wanted) => names.id == *wanted,
            MailboxName::Email(wanted) => names.email == *wanted,
        });
        // No mailbox has an empty id.
        MailboxName::Id(found.map_or_else(|| MailboxId::from(""), |names| names.id.clone()))
    }

    /// Whether the caller sees a mailbox of this name.
    pub(crate) fn sees(&self, name: MailboxName) -> bool {
        self.mailboxes.is_none()
            || !matches!(self.resolve(name), MailboxName::Id(id) if id.as_str().is_empty())
    }

    /// Whether all of these mailboxes are among those that the caller sees; `None` for all of the workspace.
    pub(crate) fn covers(&self, ids: Option<&[MailboxId]>) -> bool {
        match (&self.mailboxes, ids) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(ids)) => ids.iter().all(|id| own.ids.contains(id)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrowed() -> Narrowing {
        let names = |id: &str, email: &str, is_deleted| MailboxNames {
            id: id.into(),
            public_id: format!("uuid-{id}"),
            email: email.to_owned(),
            is_deleted,
        };
        let mut key = KeyAccess::full("key_1".into(), "ws_1".into());
        key.mailbox_ids = Some(vec!["mbx_old".into(), "mbx_new".into(), "mbx_gone".into()]);
        key.mailbox_names = vec![names("mbx_old", "a@x.test", true), names("mbx_new", "a@x.test", false)];
        Narrowing::of_key(&key)
    }

    #[test]
    fn a_name_means_an_own_mailbox_or_none() {
        let narrowed = narrowed();
        let id = |name| match narrowed.resolve(name) {
            MailboxName::Id(id) => id.to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(id(MailboxName::Email("a@x.test".to_owned())), "mbx_new");
        assert_eq!(id(MailboxName::PublicId("uuid-mbx_old".to_owned())), "mbx_old");
        assert_eq!(id(MailboxName::Id("mbx_new".into())), "mbx_new");
        for outside in [
            MailboxName::Email("b@x.test".to_owned()),
            MailboxName::Email(String::new()),
            MailboxName::Id("mbx_other".into()),
            MailboxName::Id("".into()),
            MailboxName::PublicId(String::new()),
        ] {
            assert_eq!(id(outside.clone()), "");
            assert!(!narrowed.sees(outside));
        }
        assert_eq!(narrowed.mailbox_count(), Some(1));
    }

    #[test]
    fn only_own_mailboxes_are_covered() {
        let narrowed = narrowed();
        assert!(narrowed.covers(Some(&["mbx_new".into(), "mbx_gone".into()])));
        assert!(!narrowed.covers(Some(&["mbx_new".into(), "mbx_other".into()])));
        assert!(!narrowed.covers(None));
        assert!(Narrowing::default().covers(None));
    }
}
