//! What showing several emails takes besides their rows: contents, and names of folders, in one round trip.

use std::collections::HashMap;

use model::{MailboxId, emails::ReadOptions};
use store::{
    AnySelect, Select, Tx,
    contents::{self, ReadableContent, Texts},
    emails::EmailRecord,
    folders,
};

use super::present::{FetchedContent, FolderNames, Presenter};
use crate::core::error::Result;

/// What showing several emails takes besides their rows.
#[derive(Default)]
pub(crate) struct Surroundings {
    /// The names of their folders.
    pub(crate) names: FolderNames,
    full: HashMap<String, FetchedContent>,
    safe: HashMap<String, FetchedContent>,
}

/// Which contents of emails are needed.
#[derive(Clone, Copy)]
pub(crate) struct WantedContents {
    /// Those for people.
    pub(crate) full: bool,
    /// Those for agents.
    pub(crate) safe: bool,
}

impl WantedContents {
    /// Those that are shown as bodies, if any are.
    pub(crate) fn bodies(options: &ReadOptions, with_bodies: bool) -> Self {
        let safe = options.agent_safe_content;
        Self { full: with_bodies && !safe, safe: with_bodies && safe }
    }
}

impl Surroundings {
    /// Loads what showing emails of a mailbox takes, in one round trip.
    pub(crate) async fn load(
        tx: &mut Tx,
        mailbox: &MailboxId,
        records: &[EmailRecord],
        options: &ReadOptions,
        wanted: WantedContents,
    ) -> Result<Self> {
        let presenter = Presenter { folders: &FolderNames::default(), options };
        let mut ids: Vec<&str> = Vec::new();
        if wanted.full || wanted.safe {
            let shown = records.iter().filter(|mail| presenter.wants_content(mail));
            ids.extend(shown.map(|mail| mail.content_id.as_str()));
        }
        ids.sort_unstable();
        ids.dedup();
        let mut names = (!FolderNames::are_known(records)).then(|| folders::select_list(mailbox));
        let mut full: Vec<Select<'_, ReadableContent>> =
            if wanted.full { contents::select_views(&ids) } else { Vec::new() };
        let mut safe: Vec<Select<'_, Texts>> =
            if wanted.safe { contents::select_views(&ids) } else { Vec::new() };
        let mut all: Vec<&mut dyn AnySelect<'_>> = Vec::new();
        all.extend(names.as_mut().map(|select| select as &mut dyn AnySelect<'_>));
        all.extend(full.iter_mut().map(|select| select as &mut dyn AnySelect<'_>));
        all.extend(safe.iter_mut().map(|select| select as &mut dyn AnySelect<'_>));
        if !all.is_empty() {
            tx.select(&mut all).await?;
        }
        let full = full.into_iter().flat_map(Select::rows).map(|one| (one.id.clone(), one.into()));
        let safe = safe.into_iter().flat_map(Select::rows).map(|one| (one.id.clone(), one.into()));
        let names = names.map(|names| FolderNames::from(names.rows())).unwrap_or_default();
        Ok(Self { names, full: full.collect(), safe: safe.collect() })
    }

    /// The content of an email to show as its body, if it was loaded.
    pub(crate) fn body(&self, mail: &EmailRecord, options: &ReadOptions) -> Option<FetchedContent> {
        let contents = if options.agent_safe_content { &self.safe } else { &self.full };
        let presenter = Presenter { folders: &self.names, options };
        contents.get(&mail.content_id).filter(|_| presenter.wants_content(mail)).cloned()
    }

    /// The text of an email for agents, if it was loaded.
    pub(crate) fn text(&self, mail: &EmailRecord, options: &ReadOptions) -> Option<FetchedContent> {
        let presenter = Presenter { folders: &self.names, options };
        self.safe.get(&mail.content_id).filter(|_| presenter.wants_content(mail)).cloned()
    }
}
