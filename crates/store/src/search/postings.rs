//! Search on SQLite: matches are found by walking the postings of the words alone, newest first. Rows of emails are
//! looked up for the page only, unless the search has a filter that needs them.

use std::fmt::Write as _;

use model::Timestamp;

use super::{
    queries::sqlite_query,
    terms::{MATCHING_SQLITE, MAX_COUNTED, SearchHit, SearchTerms},
};
use crate::{
    FromRow, Param, Row, Tx,
    emails::record::{COLUMNS, EmailRecord},
    error::Result,
    sql::{LIST_LENGTH, list_params, list_placeholders},
};

/// Matches that are walked at once.
const BATCH: i64 = MAX_COUNTED;
/// Left-out emails that are read for a batch. With more between its matches, their rows are looked up instead.
const MAX_HIDDEN: i64 = 4_000;

/// What `super::find` gives, with numbers of rows in the index as positions.
pub(super) async fn find(
    tx: &mut Tx,
    terms: &SearchTerms<'_>,
    after: Option<i64>,
    most: i64,
) -> Result<(Vec<SearchHit>, i64)> {
    let query = sqlite_query(terms.mailbox, terms.clauses);
    let walk = Walk { terms, query: &query };
    let counted = walk.rows(tx, None, most.max(MAX_COUNTED)).await?;
    let total = i64::try_from(counted.len()).unwrap_or(i64::MAX).min(MAX_COUNTED);
    let all_counted = counted.len() < usize::try_from(most.max(MAX_COUNTED)).unwrap_or_default();
    let mut page: Vec<i64> =
        counted.into_iter().filter(|row| after.is_none_or(|after| *row < after)).collect();
    let wanted = usize::try_from(most).unwrap_or_default();
    if page.len() < wanted && !all_counted {
        page = walk.rows(tx, after, most).await?;
    }
    page.truncate(wanted);
    Ok((records(tx, terms, &page).await?, total))
}

struct Walk<'a> {
    terms: &'a SearchTerms<'a>,
    query: &'a String,
}

impl Walk<'_> {
    /// The rows of matches, the newest first, below a row.
    async fn rows(&self, tx: &mut Tx, below: Option<i64>, most: i64) -> Result<Vec<i64>> {
        if self.terms.filter.needs_rows() {
            return self.rows_of_emails(tx, below, most).await;
        }
        let (mut found, mut below) = (Vec::new(), below.unwrap_or(i64::MAX));
        let wanted = usize::try_from(most).unwrap_or_default();
        loop {
            let batch = self.postings(tx, below).await?;
            let (Some(newest), Some(oldest)) = (batch.first(), batch.last()) else { return Ok(found) };
            let Some(hidden) = self.hidden(tx, *oldest, *newest).await? else {
                let missing = i64::try_from(wanted - found.len()).unwrap_or_default();
                found.extend(self.rows_of_emails(tx, Some(below), missing).await?);
                return Ok(found);
            };
            below = *oldest;
            let is_last = i64::try_from(batch.len()).unwrap_or(i64::MAX) < BATCH;
            found.extend(without(batch, &hidden));
            if is_last || found.len() >= wanted {
                found.truncate(wanted);
                return Ok(found);
            }
        }
    }

    /// The next rows with all words.
    async fn postings(&self, tx: &mut Tx, below: i64) -> Result<Vec<i64>> {
        let sql = "SELECT rowid FROM email_text WHERE email_text MATCH $2 AND rowid < $3 AND $1 <> ''
             ORDER BY rowid DESC LIMIT $4";
        let rows: Vec<(i64,)> = tx.all(sql, &[self.query.into(), below.into(), BATCH.into()]).await?;
        Ok(rows.into_iter().map(|(row,)| row).collect())
    }

    /// The rows of emails in this range that the search leaves out, the newest first; `None` when there are many.
    async fn hidden(&self, tx: &mut Tx, oldest: i64, newest: i64) -> Result<Option<Vec<i64>>> {
        let rows: Vec<(i64, i64, Option<i64>)> = tx
            .all(
                "SELECT text_row, listed, held_until FROM email WHERE workspace_id = $1 AND mailbox_id = $2
                   AND text_row BETWEEN $3 AND $4 AND (listed = 0 OR held_until IS NOT NULL)
                 ORDER BY text_row DESC LIMIT $5",
                &[self.terms.mailbox.into(), oldest.into(), newest.into(), MAX_HIDDEN.into()],
            )
            .await?;
        if i64::try_from(rows.len()).unwrap_or(i64::MAX) == MAX_HIDDEN {
            return Ok(None);
        }
        let now = self.terms.filter.held_after.map(Timestamp::as_micros);
        let is_held = |until: Option<i64>| until.zip(now).is_some_and(|(until, now)| until > now);
        let hidden = rows.into_iter().filter(|(_, listed, until)| *listed == 0 || is_held(*until));
        Ok(Some(hidden.map(|(row, ..)| row).collect()))
    }

    /// The rows of matches that pass the filter, found by the rows of their emails.
    async fn rows_of_emails(&self, tx: &mut Tx, below: Option<i64>, most: i64) -> Result<Vec<i64>> {
        let mut sql = format!("SELECT email_text.rowid {MATCHING_SQLITE}");
        let mut params: Vec<Param<'_>> = vec![self.terms.mailbox.into(), self.query.into()];
        self.terms.filter.conditions("$2", &mut sql, &mut params);
        if let Some(below) = below {
            params.push(below.into());
            let _ = write!(sql, " AND email_text.rowid < ${}", params.len() + 1);
        }
        params.push(most.into());
        let _ = write!(sql, " ORDER BY email_text.rowid DESC LIMIT ${}", params.len() + 1);
        let rows: Vec<(i64,)> = tx.all(&sql, &params).await?;
        Ok(rows.into_iter().map(|(row,)| row).collect())
    }
}

/// Those of the first rows that are not among the second; both fall.
fn without(rows: Vec<i64>, hidden: &[i64]) -> impl Iterator<Item = i64> {
    let mut hidden = hidden.iter().copied().peekable();
    rows.into_iter().filter(move |row| {
        while hidden.next_if(|one| one > row).is_some() {}
        hidden.peek() != Some(row)
    })
}

/// An email with its row in the index.
struct Numbered(i64, EmailRecord);

impl FromRow for Numbered {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self(row.next()?, EmailRecord::from_row(row)?))
    }
}

/// The emails of rows in the index, in their order.
async fn records(tx: &mut Tx, terms: &SearchTerms<'_>, rows: &[i64]) -> Result<Vec<SearchHit>> {
    // From the index, whose table of email ids is small, to the emails.
    let sql = format!(
        "SELECT texts.id, {COLUMNS} FROM email_text_content AS texts CROSS JOIN email ON email.workspace_id = $1
           AND email.mailbox_id = $2 AND email.id = texts.c0 WHERE texts.id IN ({})",
        list_placeholders(3)
    );
    let mut found = Vec::with_capacity(rows.len());
    for some in rows.chunks(LIST_LENGTH) {
        let mut params: Vec<Param<'_>> = vec![terms.mailbox.into()];
        params.extend(list_params(some.iter().copied(), i64::MIN));
        let mut page: Vec<Numbered> = tx.all(&sql, &params).await?;
        page.sort_unstable_by_key(|one| std::cmp::Reverse(one.0));
        found.extend(page.into_iter().map(|one| SearchHit { email: one.1, position: one.0.to_string() }));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn what_is_hidden_is_left_out() {
        let rows = without(vec![9, 7, 5, 3, 1], &[8, 7, 4, 1]);
        assert_eq!(rows.collect::<Vec<_>>(), [9, 5, 3]);
        assert_eq!(without(vec![2, 1], &[]).count(), 2);
    }
}
