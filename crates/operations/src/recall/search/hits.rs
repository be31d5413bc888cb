//! What every kind of search shares: its query and filter, and presenting its hits.

use model::{
    MailboxId, Timestamp,
    emails::ReadOptions,
    search::{
        SearchQuery,
        query::{Field, Query, QueryFault},
    },
};
use store::{
    Tx,
    emails::{EmailFilter, EmailRecord},
};

use super::rank::{MAX_HIGHLIGHTS, Rank};
use crate::{
    core::{
        app::App,
        call::Call,
        error::{Detail, Error, ErrorKind, Result},
    },
    inbox::emails::{
        present::{self, FetchedContent, FolderNames, Presenter},
        surroundings::{Surroundings, WantedContents},
    },
};

/// A matching message, with what is needed to show it.
pub(super) struct Hit {
    pub(super) email: EmailRecord,
    pub(super) text: Option<FetchedContent>,
    pub(super) body: Option<FetchedContent>,
}

pub(super) fn fingerprint(mailbox: &str, input: &SearchQuery) -> String {
    format!(
        "searchEmails {mailbox} {:?}",
        (
            (
                &input.query,
                &input.folder,
                &input.from,
                &input.to,
                &input.subject,
                input.date_start,
                input.date_end
            ),
            (input.is_read, input.is_starred, input.category, &input.custom_label, input.has_attachment),
            (input.include_held, input.mode),
        )
    )
}

/// The query combined with the parameters for its fields.
pub(super) fn full_query(input: &SearchQuery) -> Result<Query> {
    let mut query = Query::parse(&input.query).map_err(|fault| query_error(&fault))?;
    for (field, text) in
        [(Field::Sender, &input.from), (Field::Recipient, &input.to), (Field::Subject, &input.subject)]
    {
        if let Some(text) = text {
            query.add_words(field, text);
        }
    }
    if let Some(wanted) = input.has_attachment {
        query.add_attachment(wanted);
    }
    if let Some(wanted) = input.is_read {
        query.add_read(wanted);
    }
    if let Some(wanted) = input.is_starred {
        query.add_starred(wanted);
    }
    Ok(query)
}

/// A mistake in a query, with its place in the text and in the details.
fn query_error(fault: &QueryFault) -> Error {
    let message = format!("Invalid search query at character {} (“{}”)", fault.column, fault.token);
    let detail = Detail::new("query", fault.to_string());
    Error::with_message(ErrorKind::ValidationFailed, message).with_details(vec![detail])
}

/// Loads what is needed to show matching messages.
pub(super) async fn fetch(
    tx: &mut Tx,
    mailbox: &MailboxId,
    input: &SearchQuery,
    found: Vec<EmailRecord>,
    by_terms: bool,
) -> Result<(Vec<Hit>, FolderNames)> {
    let options = input.read_options();
    let with_bodies = options.max_body_chars.is_some();
    let bodies = WantedContents::bodies(&options, with_bodies);
    let wanted = WantedContents { safe: bodies.safe || by_terms, ..bodies };
    let surroundings = Surroundings::load(tx, mailbox, &found, &options, wanted).await?;
    let hits = found.into_iter().map(|email| Hit {
        text: surroundings.text(&email, &options).filter(|_| by_terms),
        body: surroundings.body(&email, &options).filter(|_| with_bodies),
        email,
    });
    Ok((hits.collect(), surroundings.names))
}

pub(super) fn filter(input: &SearchQuery, query: &Query, now: Timestamp) -> EmailFilter {
    let later = |one: Option<Timestamp>, other: Option<Timestamp>| one.max(other);
    let earlier = |one: Option<Timestamp>, other: Option<Timestamp>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    EmailFilter {
        folder: input.folder.clone(),
        thread: None,
        category: input.category,
        labels: input.custom_label.iter().chain(&query.labels).cloned().collect(),
        is_read: query.is_read,
        is_starred: query.is_starred,
        has_attachment: query.has_attachment,
        date_start: later(input.date_start, query.after),
        date_end: earlier(input.date_end, query.before),
        held_after: (!input.include_held).then_some(now),
    }
}

pub(super) async fn show(
    app: &App,
    call: &Call,
    hit: Hit,
    names: &FolderNames,
    options: &ReadOptions,
    rank: &Rank<'_>,
) -> Result<model::emails::Email> {
    let presenter = Presenter { folders: names, options };
    let text = match hit.text {
        Some(FetchedContent::Safe(texts)) => {
            let mut enough = |start: &str| rank.has_passage(start);
            Some(present::open_start(app, &call.workspace, &texts, &mut enough).await?)
        }
        _ => None,
    };
    let lines = [hit.email.subject.clone(), hit.email.sender.clone(), hit.email.to_line.clone()];
    let mut email = presenter.open_and_show(app, &call.workspace, hit.email, hit.body).await?;
    email.raw_headers = None;
    email.score = Some(rank.score(&lines, text.as_deref().unwrap_or_default()));
    if !email.content_omitted {
        // From the shown text, so that safe content stays safe.
        let mut passages = rank.highlights(&email.subject);
        if let Some(text) = &text {
            passages.extend(rank.highlights(text));
        }
        passages.truncate(MAX_HIGHLIGHTS);
        email.highlights = Some(passages);
    }
    Ok(email)
}
