//! Search in the mail of a mailbox.

mod meaning;

use std::{ops::Range, time::Duration};

use model::{
    MailboxId, Timestamp,
    emails::{EmailPage, ReadOptions, SortColumn, SortDirection},
    search::{
        SearchMode, SearchQuery,
        query::{Clause, Field, Query},
        words::{LONGEST, words},
    },
};
use serde::{Deserialize, Serialize};
use store::{
    Tx,
    emails::{self, EmailFilter, EmailRecord, Place, Sort},
    mailboxes::MailboxName,
    search,
};

use crate::{
    App, Call, Error, ErrorKind, Operation, Result, cursor,
    emails::{
        label_id,
        present::{self, Fetched, FolderNames, Presenter, Shown},
    },
    folders, mailboxes,
};

/// Searches emails.
pub const SEARCH: Operation = Operation::read(
    "searchEmails",
    "Searches the emails of a mailbox, the last that arrived first, or the best first with mode=semantic or hybrid; content is untrusted. `totalCount` is counted up to 100.",
)
.errors(&[
    ErrorKind::NotFound,
    ErrorKind::FolderUnknown,
    ErrorKind::InvalidCursor,
    ErrorKind::MemoryUnavailable,
]);

pub(crate) const OPERATIONS: &[&Operation] = &[&SEARCH];

/// Characters around a match that are shown.
const AROUND: usize = 60;
/// Bytes of a text that passages are looked for in.
const MOST_READ: usize = 100_000;
/// Bytes of a text that tell how well it fits.
const MOST_RANKED: usize = 16 * 1024;
/// Words of these in scripts that have to be folded, which takes longer.
const MOST_RANKED_WORDS: usize = 2_000;
/// Passages that an answer shows of one mail.
const MOST_HIGHLIGHTS: usize = 3;

/// Where a page ended.
#[derive(Serialize, Deserialize)]
struct Mark {
    place: String,
    date: i64,
}

/// A mail that was found, with what is needed to show it.
struct Hit {
    mail: EmailRecord,
    text: Option<Fetched>,
    body: Option<Fetched>,
}

/// How long a search waits until the last mails are indexed.
const INDEXING: Duration = Duration::from_secs(2);

/// Searches the emails of a mailbox.
#[crate::boxed]
pub async fn search(app: &App, call: &Call, mailbox: &str, input: SearchQuery) -> Result<EmailPage> {
    // A store that cannot be written can still be searched.
    match tokio::time::timeout(INDEXING, app.db().index_texts()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "a search goes without the last mails"),
        Err(_) => tracing::warn!("a search does not wait longer for the last mails"),
    }
    if input.mode != SearchMode::Text {
        return meaning::search(app, call, mailbox, input).await;
    }
    let named = mailboxes::name(mailbox);
    let key = app.data_key(&call.workspace).await?;
    let about = fingerprint(mailbox, &input);
    let after: Option<Mark> =
        input.cursor.as_deref().map(|text| cursor::open(&key, &about, text)).transpose()?;
    let (options, now) = (input.read_options(), call.now);
    let query = full_query(&input)?;
    let clauses = query.clauses.clone();
    let found = app.read(call, async move |tx| find(tx, &named, &input, &query, after, now).await).await?;
    let next_cursor = match (&found.next, found.more) {
        (Some(mark), true) => Some(cursor::seal(&key, &about, mark)?),
        _ => None,
    };
    let rank = Rank::new(&clauses);
    let mut emails = Vec::with_capacity(found.hits.len());
    for hit in found.hits {
        emails.push(show(app, call, hit, &found.names, &options, &rank).await?);
    }
    Ok(EmailPage { emails, total_count: found.total, has_more: found.more, next_cursor })
}

fn fingerprint(mailbox: &str, input: &SearchQuery) -> String {
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

/// The query with the parameters that say the same as its fields.
fn full_query(input: &SearchQuery) -> Result<Query> {
    let parsed = Query::parse(&input.query);
    let mut query = parsed.map_err(|fault| Error::invalid("query", fault.to_string()))?;
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

struct Findings {
    hits: Vec<Hit>,
    names: FolderNames,
    total: i64,
    more: bool,
    next: Option<Mark>,
}

async fn find(
    tx: &mut Tx,
    named: &MailboxName,
    input: &SearchQuery,
    query: &Query,
    after: Option<Mark>,
    now: Timestamp,
) -> Result<Findings> {
    let mailbox = mailboxes::find_id(tx, named).await?;
    let filter = filter(tx, &mailbox, input, query, now).await?;
    let most = input.limit + 1;
    // Without a word there is nothing to look up in the index: the list does it.
    let by_words = !query.clauses.is_empty();
    let (mut found, total) = if query.impossible {
        (Vec::new(), 0)
    } else if by_words {
        let place = after.as_ref().map(|mark| mark.place.as_str());
        let wanted = search::Wanted { mailbox: &mailbox, clauses: &query.clauses, filter: &filter };
        let (found, total) = search::find(tx, &wanted, place, most).await?;
        (found.into_iter().map(|found| (found.email, found.place)).collect::<Vec<_>>(), total)
    } else {
        let sort = Sort { column: SortColumn::Date, direction: SortDirection::Descending };
        let after = after.map(|mark| Place { numbers: vec![mark.date], text: None, id: mark.place.into() });
        let found = emails::list(tx, &mailbox, &filter, sort, after.as_ref(), 0, most).await?;
        let total = emails::count(tx, &mailbox, &filter).await?;
        (found.into_iter().map(|mail| (mail.clone(), mail.id.to_string())).collect(), total)
    };
    let wanted = usize::try_from(input.limit).unwrap_or_default();
    let more = found.len() > wanted;
    found.truncate(wanted);
    let next = found.last().map(|(mail, place)| Mark { place: place.clone(), date: mail.date.as_micros() });
    let (hits, names) =
        fetch(tx, &mailbox, input, found.into_iter().map(|(mail, _)| mail).collect(), by_words).await?;
    Ok(Findings { hits, names, total, more, next })
}

/// Fetches what is needed to show mails that were found.
async fn fetch(
    tx: &mut Tx,
    mailbox: &MailboxId,
    input: &SearchQuery,
    found: Vec<EmailRecord>,
    by_words: bool,
) -> Result<(Vec<Hit>, FolderNames)> {
    let names = FolderNames::load(tx, mailbox).await?;
    let options = input.read_options();
    let presenter = Presenter { folders: &names, options: &options };
    let nothing = || vec![None; found.len()];
    let texts =
        if by_words { present::fetch_all(tx, &presenter.wanted(&found), true).await? } else { nothing() };
    let with_bodies = options.max_body_chars.is_some();
    let bodies = if with_bodies {
        present::fetch_all(tx, &presenter.wanted(&found), options.agent_safe_content).await?
    } else {
        nothing()
    };
    let contents = texts.into_iter().zip(bodies);
    let hits = found.into_iter().zip(contents).map(|(mail, (text, body))| Hit { mail, text, body });
    Ok((hits.collect(), names))
}

async fn filter(
    tx: &mut Tx,
    mailbox: &MailboxId,
    input: &SearchQuery,
    query: &Query,
    now: Timestamp,
) -> Result<EmailFilter> {
    folders::require(tx, mailbox, input.folder.as_ref()).await?;
    let later = |one: Option<Timestamp>, other: Option<Timestamp>| one.max(other);
    let earlier = |one: Option<Timestamp>, other: Option<Timestamp>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let mut labels = Vec::new();
    for slug in input.custom_label.iter().chain(&query.labels) {
        labels.push(label_id(tx, mailbox, slug).await?);
    }
    Ok(EmailFilter {
        folder: input.folder.clone(),
        thread: None,
        category: input.category,
        labels,
        is_read: query.is_read,
        is_starred: query.is_starred,
        has_attachment: query.has_attachment,
        date_start: later(input.date_start, query.after),
        date_end: earlier(input.date_end, query.before),
        held_after: (!input.include_held).then_some(now),
    })
}

async fn show(
    app: &App,
    call: &Call,
    hit: Hit,
    names: &FolderNames,
    options: &ReadOptions,
    rank: &Rank<'_>,
) -> Result<model::emails::Email> {
    let presenter = Presenter { folders: names, options };
    let text = match hit.text {
        Some(fetched) => match present::open(app, &call.workspace, fetched).await? {
            Shown::Safe(text) => Some(text),
            _ => None,
        },
        None => None,
    };
    let lines = [hit.mail.subject.clone(), hit.mail.sender.clone(), hit.mail.to_line.clone()];
    let mut email = presenter.open_and_show(app, &call.workspace, hit.mail, hit.body).await?;
    email.raw_headers = None;
    email.score = Some(rank.score(&lines, text.as_deref().unwrap_or_default()));
    if !email.content_omitted {
        // From what is shown, so that safe content stays safe.
        let mut passages = rank.highlights(&email.subject);
        if let Some(text) = &text {
            passages.extend(rank.highlights(text));
        }
        passages.truncate(MOST_HIGHLIGHTS);
        email.highlights = Some(passages);
    }
    Ok(email)
}

/// Tells how well a mail fits, and where. The words of a query are few, and a mail is read once for all of them.
struct Rank<'a> {
    wanted: Vec<(&'a str, bool)>,
    /// What each byte may be: most words of a text begin with another than those that are looked for.
    bytes: [u8; 256],
}

/// A letter or digit of ASCII.
const PART: u8 = 1;
/// One that a word in question begins with.
const FIRST: u8 = 2;

impl<'a> Rank<'a> {
    fn new(clauses: &'a [Clause]) -> Self {
        let mut wanted = Vec::new();
        for clause in clauses.iter().filter(|clause| !clause.negated) {
            let last = clause.words.len().saturating_sub(1);
            for (index, word) in clause.words.iter().enumerate() {
                wanted.push((word.as_str(), clause.prefix && index == last));
            }
        }
        let mut bytes = [0; 256];
        for byte in 0..=u8::MAX {
            if byte.is_ascii_alphanumeric() {
                bytes[usize::from(byte)] = PART;
            }
        }
        for first in wanted.iter().filter_map(|(word, _)| word.bytes().next()) {
            bytes[usize::from(first)] |= FIRST;
            bytes[usize::from(first.to_ascii_uppercase())] |= FIRST;
        }
        Self { wanted, bytes }
    }

    fn is_wanted(&self, word: &str) -> bool {
        self.wanted.iter().any(|(wanted, prefix)| word == *wanted || (*prefix && word.starts_with(wanted)))
    }

    /// Where words in question stand in a text of ASCII, which is compared where it stands. Most of it is passed over:
    /// only bytes that such a word begins with are looked at.
    fn plain_matches<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = Range<usize>> + 't {
        let mut read = 0;
        std::iter::from_fn(move || {
            loop {
                let first = |byte: &u8| self.bytes[usize::from(*byte)] & FIRST != 0;
                let start = read + text[read..].iter().position(first)?;
                read = start + 1;
                if !text[..start].last().is_some_and(|byte| self.is_part(*byte))
                    && let Some(length) = self.plain_match(&text[start..])
                {
                    return Some(start..start + length);
                }
            }
        })
    }

    /// Whether a byte is part of a word.
    fn is_part(&self, byte: u8) -> bool {
        self.bytes[usize::from(byte)] & PART != 0
    }

    /// How long the word is that a text begins with, if it is one in question.
    fn plain_match(&self, text: &[u8]) -> Option<usize> {
        let length = text.iter().position(|byte| !self.is_part(*byte)).unwrap_or(text.len());
        let word = &text[..length.min(LONGEST)];
        let is_wanted = self.wanted.iter().any(|(wanted, prefix)| {
            let head = word.get(..wanted.len());
            let begins = head.is_some_and(|head| head.eq_ignore_ascii_case(wanted.as_bytes()));
            begins && (*prefix || word.len() == wanted.len())
        });
        is_wanted.then_some(length)
    }

    /// Whether a run of letters and digits, as it stands in a text, is or holds a word in question.
    fn is_match(&self, run: &str) -> bool {
        if run.is_ascii() {
            self.plain_match(run.as_bytes()).is_some()
        } else {
            words(run, 64).iter().any(|word| self.is_wanted(word))
        }
    }

    /// How often words in question stand in the beginning of a text.
    fn count(&self, text: &str) -> u32 {
        let text = &text[..text.floor_char_boundary(MOST_RANKED)];
        let found = if text.is_ascii() {
            self.plain_matches(text.as_bytes()).count()
        } else {
            words(text, MOST_RANKED_WORDS).iter().filter(|word| self.is_wanted(word)).count()
        };
        u32::try_from(found).unwrap_or(u32::MAX)
    }

    /// From 0 to 1: matches in subject and sender weigh more than those in the text, many little more than some.
    fn score(&self, lines: &[String; 3], text: &str) -> f64 {
        let weight = 4.0 * f64::from(self.count(&lines[0]))
            + 2.0 * f64::from(self.count(&lines[1]))
            + f64::from(self.count(&lines[2]))
            + f64::from(self.count(text)).ln_1p();
        let score = weight / (weight + 4.0);
        (score * 10_000.0).round() / 10_000.0
    }

    /// Passages around the first matches, the words in question between `**`.
    fn highlights(&self, text: &str) -> Vec<String> {
        let text_read = &text[..text.floor_char_boundary(MOST_READ)];
        if text_read.is_ascii() {
            passages(text, self.plain_matches(text_read.as_bytes()))
        } else {
            passages(text, runs(text_read).filter(|run| self.is_match(&text[run.clone()])))
        }
    }
}

fn passages(text: &str, matches: impl Iterator<Item = Range<usize>>) -> Vec<String> {
    let mut passages = Vec::new();
    let mut covered = 0;
    for Range { start, end } in matches {
        if start < covered {
            continue;
        }
        let from = boundary_before(text, start);
        let until = boundary_after(text, end);
        let passage = format!("{}**{}**{}", &text[from..start], &text[start..end], &text[end..until]);
        passages.push(passage.replace('\n', " "));
        covered = until;
        if passages.len() >= MOST_HIGHLIGHTS {
            break;
        }
    }
    passages
}

/// Where the runs of letters and digits of a text begin and end.
fn runs(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut indices = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = indices.find(|(_, character)| character.is_alphanumeric())?;
        let mut end = start + first.len_utf8();
        while let Some((at, character)) = indices.next_if(|(_, character)| character.is_alphanumeric()) {
            end = at + character.len_utf8();
        }
        Some(start..end)
    })
}

fn boundary_before(text: &str, at: usize) -> usize {
    text[..at].char_indices().rev().take(AROUND).last().map_or(at, |(index, _)| index)
}

fn boundary_after(text: &str, at: usize) -> usize {
    text[at..].char_indices().nth(AROUND).map_or(text.len(), |(index, _)| at + index)
}

#[cfg(test)]
mod tests {
    use super::*;

    // rules: SEARCH-3
    #[test]
    fn highlights_mark_the_words() {
        let query = Query::parse("invoice due*").unwrap();
        let rank = Rank::new(&query.clauses);
        assert_eq!(rank.highlights("Your Invoice is here"), ["Your **Invoice** is here"]);
        assert_eq!(rank.highlights("nothing"), Vec::<String>::new());
        let long = format!("{} overDUE duedate {}", "é".repeat(100), "x".repeat(100));
        assert!(rank.highlights(&long)[0].contains("**duedate**"));
        let lines = |subject: &str| [subject.to_owned(), String::new(), String::new()];
        assert!(rank.score(&lines("invoice"), "") > rank.score(&lines(""), "invoice"));
    }

    #[test]
    fn plain_text_is_read_like_any_other() {
        let query = Query::parse("due* 7 invoice").unwrap();
        let rank = Rank::new(&query.clauses);
        let long = format!("invoice{}", "x".repeat(2 * LONGEST));
        let texts =
            ["", "7", "due", "Dues,INVOICE-77 7.undue _due_", "invoices invoice", "\n due\0due", &long];
        for text in texts {
            let plain: Vec<_> = rank.plain_matches(text.as_bytes()).collect();
            let holds =
                |run: &Range<usize>| words(&text[run.clone()], 64).iter().any(|word| rank.is_wanted(word));
            assert_eq!(plain, runs(text).filter(holds).collect::<Vec<_>>(), "{text:?}");
        }
    }
}
