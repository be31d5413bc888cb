//! Search by meaning, or by meaning and terms together: over the same passages as recall, of one mailbox.
//!
//! A bounded number of the best passages is considered, so a page costs the same however much mail there is. Field
//! clauses and negations must match exactly; the other terms give the meaning.

use std::collections::HashMap;

use embed::index::{TERM_WEIGHT, VECTOR_WEIGHT, fuse};
use model::{
    EmailId, MailboxId,
    emails::EmailPage,
    search::{
        SearchMode, SearchQuery,
        query::{Clause, Field, Query as WordQuery},
    },
};
use serde::{Deserialize, Serialize};
use store::{
    emails::{EmailFilter, EmailRecord},
    mailboxes as stored_mailboxes,
    memory::{self, Owner},
    search::{self, Matching},
};

use super::{
    hits::{Hit, fetch, filter, fingerprint, full_query, show},
    rank::Rank,
    terms,
};
use crate::{
    core::{
        app::App,
        call::Call,
        cursor,
        error::{Error, ErrorKind, Result},
        state::indexes::{MailFilter, PassageFilter},
    },
    inbox::emails::present::FolderNames,
    mailbox::{folders, mailboxes},
    recall::memory::{
        find::{Query, ranked},
        mail::is_on,
        passages, require,
    },
};

/// Passages of each list that are considered.
const MAX_PASSAGES: usize = 200;
/// Messages that are found by their terms alone.
const MAX_TERM_HITS: i64 = 100;

/// Where a page ended.
#[derive(Serialize, Deserialize)]
struct RankedPosition {
    offset: usize,
}

/// Searches the emails of a mailbox by meaning.
pub(super) async fn search(app: &App, call: &Call, mailbox: &str, input: SearchQuery) -> Result<EmailPage> {
    if !is_on(app) {
        let fix = "Use mode=text; the operator can switch embeddings.mail on.";
        return Err(Error::new(ErrorKind::MemoryUnavailable).with_fix(fix));
    }
    let key = require(app, &call.workspace).await?;
    let query = full_query(&input)?;
    if query_text(&query).is_empty() {
        // Without terms there is no meaning: the list answers it.
        return terms::search(app, call, mailbox, SearchQuery { mode: SearchMode::Text, ..input }).await;
    }
    let about = fingerprint(mailbox, &input);
    let position: Option<RankedPosition> =
        input.cursor.as_deref().map(|text| cursor::open(&key, &about, text)).transpose()?;
    let offset = position.map_or(0, |position| position.offset);
    let (ordered, total) = order(app, call, mailbox, &input, &query).await?;
    let limit = usize::try_from(input.limit).unwrap_or_default();
    let page: Vec<(EmailRecord, f64)> = ordered.into_iter().skip(offset).take(limit).collect();
    let has_more = offset + page.len() < total;
    let next_cursor = has_more
        .then(|| cursor::seal(&key, &about, &RankedPosition { offset: offset + page.len() }))
        .transpose()?;
    let emails = show_page(app, call, mailbox, input, page, &query.clauses).await?;
    let total_count = i64::try_from(total).unwrap_or(i64::MAX);
    Ok(EmailPage { emails, total_count, has_more, next_cursor })
}

/// The terms of the query that belong to no field and are not negated.
fn query_text(query: &WordQuery) -> String {
    let clauses = query.clauses.iter().filter(|clause| !is_exact(clause));
    clauses.flat_map(|clause| &clause.words).map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// Whether a clause must match exactly.
fn is_exact(clause: &Clause) -> bool {
    clause.negated || clause.field != Field::Any
}

/// The matching messages, best first, with their scores, and their number.
async fn order(
    app: &App,
    call: &Call,
    mailbox: &str,
    input: &SearchQuery,
    words: &WordQuery,
) -> Result<(Vec<(EmailRecord, f64)>, usize)> {
    let (named, wanted, parsed, now) =
        (mailboxes::name(call, mailbox), input.clone(), words.clone(), call.now);
    let (mailbox, filter, by_terms) = app
        .read(call, async move |tx| {
            let filter = filter(&wanted, &parsed, now);
            if wanted.mode == SearchMode::Hybrid && !parsed.impossible {
                let words = Matching { clauses: &parsed.clauses, filter: &filter };
                let page = search::find(tx, &named, words, None, MAX_TERM_HITS)
                    .await?
                    .ok_or_else(mailboxes::missing)?;
                if !page.has_folder {
                    return Err(Error::new(ErrorKind::FolderUnknown));
                }
                return Ok((page.mailbox, filter, page.hits));
            }
            let mut about = stored_mailboxes::select_with_folder(&named, filter.folder.as_ref());
            tx.select(&mut [&mut about]).await?;
            Ok((folders::require(about.row())?.id, filter.clone(), Vec::new()))
        })
        .await?;
    if words.impossible {
        return Ok((Vec::new(), 0));
    }
    let near = nearest(app, call, &mailbox, words, &filter).await?;
    let mut lists = vec![(VECTOR_WEIGHT, near.by_meaning)];
    if input.mode == SearchMode::Hybrid {
        lists.push((TERM_WEIGHT, near.by_rank));
        lists.push((TERM_WEIGHT, by_terms.iter().map(|found| found.email.id.clone()).collect()));
    }
    let mut emails = near.emails;
    emails.extend(by_terms.into_iter().map(|found| (found.email.id.clone(), found.email)));
    let mut ordered: Vec<(EmailRecord, f64)> = Vec::new();
    for (id, fused) in fuse_ids(&lists) {
        let Some(email) = emails.remove(&id) else { continue };
        let score = if input.mode == SearchMode::Semantic {
            near.likeness.get(&id).copied().unwrap_or_default()
        } else {
            fused
        };
        ordered.push((email, (score.clamp(0.0, 1.0) * 10_000.0).round() / 10_000.0));
    }
    let total = ordered.len();
    Ok((ordered, total))
}

/// Messages with matching passages.
struct NearestEmails {
    /// The nearest first.
    by_meaning: Vec<EmailId>,
    /// Those with the best terms first.
    by_rank: Vec<EmailId>,
    /// The similarity, from 0 to 1.
    likeness: HashMap<EmailId, f64>,
    /// The messages that pass the filter.
    emails: HashMap<EmailId, EmailRecord>,
}

async fn nearest(
    app: &App,
    call: &Call,
    mailbox: &MailboxId,
    words: &WordQuery,
    filter: &EmailFilter,
) -> Result<NearestEmails> {
    let query = Query::new(app, &call.workspace, &query_text(words)).await?;
    let index = app.indexes().get(app, &call.workspace).await?;
    let wanted = PassageFilter {
        memories: false,
        documents: false,
        mail: MailFilter::Of(vec![mailbox.as_str().to_owned()]),
    };
    let [near, fitting] = ranked(&index, &query, &wanted, MAX_PASSAGES).await?;
    let numbers: Vec<i64> = fuse(&[(VECTOR_WEIGHT, &near), (TERM_WEIGHT, &fitting)])
        .into_iter()
        .map(|(number, _)| number)
        .collect();
    let (asked_for, now, filter, mailbox) = (numbers.clone(), call.now, filter.clone(), mailbox.clone());
    let exact: Vec<Clause> = words.clauses.iter().filter(|clause| is_exact(clause)).cloned().collect();
    let (candidates, emails) = app
        .read(call, async move |tx| {
            let candidates = memory::candidates(tx, &asked_for, now).await?;
            let ids: Vec<EmailId> =
                candidates.iter().filter_map(|row| email_of(&row.owner)).cloned().collect();
            let exact = search::SearchTerms { mailbox: &mailbox, clauses: &exact, filter: &filter };
            let emails = search::among(tx, &exact, &ids).await?;
            Ok((candidates, emails))
        })
        .await?;
    let gone: Vec<i64> =
        numbers.into_iter().filter(|number| !candidates.iter().any(|row| row.number == *number)).collect();
    if !gone.is_empty() {
        index.remove(&gone);
    }
    let ids_by_number: HashMap<i64, &EmailId> =
        candidates.iter().filter_map(|row| Some((row.number, email_of(&row.owner)?))).collect();
    let mut likeness: HashMap<EmailId, f64> = HashMap::new();
    for row in &candidates {
        let distance = passages::distance(&row.vector, &query.vector);
        if let (Some(id), Some(distance)) = (email_of(&row.owner), distance) {
            let known = likeness.entry(id.clone()).or_default();
            *known = known.max(1.0 - distance);
        }
    }
    let emails: HashMap<EmailId, EmailRecord> =
        emails.into_iter().map(|email| (email.id.clone(), email)).collect();
    let in_order = |numbers: &[i64]| {
        let mut ids: Vec<EmailId> = Vec::new();
        for id in numbers
            .iter()
            .filter_map(|number| ids_by_number.get(number))
            .filter(|id| emails.contains_key(**id))
        {
            if !ids.contains(id) {
                ids.push((*id).clone());
            }
        }
        ids
    };
    let mut by_meaning = in_order(&near);
    let near_to = |id: &EmailId| likeness.get(id).copied().unwrap_or_default();
    by_meaning.sort_by(|one, other| near_to(other).total_cmp(&near_to(one)));
    Ok(NearestEmails { by_meaning, by_rank: in_order(&fitting), likeness, emails })
}

fn email_of(owner: &Owner) -> Option<&EmailId> {
    if let Owner::Email(_, id) = owner { Some(id) } else { None }
}

/// Fuses lists of messages by their ranks.
fn fuse_ids(lists: &[(f64, Vec<EmailId>)]) -> Vec<(EmailId, f64)> {
    let mut numbers: HashMap<&EmailId, i64> = HashMap::new();
    let mut ids: Vec<&EmailId> = Vec::new();
    let mut numbered = Vec::with_capacity(lists.len());
    for (weight, list) in lists {
        let of_list: Vec<i64> = list
            .iter()
            .map(|id| {
                *numbers.entry(id).or_insert_with(|| {
                    ids.push(id);
                    i64::try_from(ids.len() - 1).unwrap_or(i64::MAX)
                })
            })
            .collect();
        numbered.push((*weight, of_list));
    }
    let lists: Vec<(f64, &[i64])> =
        numbered.iter().map(|(weight, list)| (*weight, list.as_slice())).collect();
    let fused = fuse(&lists).into_iter();
    fused
        .filter_map(|(number, score)| {
            let id = ids.get(usize::try_from(number).ok()?)?;
            Some(((*id).clone(), score))
        })
        .collect()
}

async fn show_page(
    app: &App,
    call: &Call,
    mailbox: &str,
    input: SearchQuery,
    page: Vec<(EmailRecord, f64)>,
    clauses: &[Clause],
) -> Result<Vec<model::emails::Email>> {
    let (named, options) = (mailboxes::name(call, mailbox), input.read_options());
    let (emails, scores): (Vec<EmailRecord>, Vec<f64>) = page.into_iter().unzip();
    let (hits, names): (Vec<Hit>, FolderNames) = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            fetch(tx, &mailbox, &input, emails, true).await
        })
        .await?;
    let rank = Rank::new(clauses);
    let mut emails = Vec::with_capacity(hits.len());
    for (hit, score) in hits.into_iter().zip(scores) {
        let mut email = show(app, call, hit, &names, &options, &rank).await?;
        email.score = Some(score);
        emails.push(email);
    }
    Ok(emails)
}
