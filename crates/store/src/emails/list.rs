//! Lists of emails: filters, sorting, pages whose cost does not depend on the size of the mailbox.

use std::fmt::Write as _;

use model::{
    EmailId, FolderId, LabelId, MailboxId, ThreadId, Timestamp,
    emails::{Category, SortColumn, SortDirection},
};

use serde::{Deserialize, Serialize};

use super::record::{COLUMNS, EmailRecord};
use crate::{
    Param, Tx,
    error::Result,
    sql::{LIST_LENGTH, list_params, list_placeholders},
};

/// Which emails a list shows.
#[derive(Clone, Debug, Default)]
pub struct EmailFilter {
    /// Only this folder; without it all but Trash and Spam.
    pub folder: Option<FolderId>,
    /// Only this thread.
    pub thread: Option<ThreadId>,
    /// Only this category.
    pub category: Option<Category>,
    /// Only emails with all of these labels.
    pub labels: Vec<LabelId>,
    /// Only read or only unread ones.
    pub is_read: Option<bool>,
    /// Only starred ones, or only others.
    pub is_starred: Option<bool>,
    /// Only ones with attachments, or only others.
    pub has_attachment: Option<bool>,
    /// Not before this time.
    pub date_start: Option<Timestamp>,
    /// Before this time.
    pub date_end: Option<Timestamp>,
    /// Leave out emails that are held at this time.
    pub held_after: Option<Timestamp>,
}

impl EmailFilter {
    /// Whether folder counters alone give the number of matches.
    pub fn is_plain(&self) -> bool {
        self.thread.is_none()
            && self.category.is_none()
            && self.labels.is_empty()
            && self.is_starred.is_none()
            && self.has_attachment.is_none()
            && self.date_start.is_none()
            && self.date_end.is_none()
    }

    /// Whether matches of a search need their rows, to be compared with more than what a search leaves out anyway.
    pub(crate) fn needs_rows(&self) -> bool {
        !self.is_plain() || self.folder.is_some() || self.is_read.is_some()
    }

    /// Appends the conditions to a statement, and their values to its parameters, of which `$1` is the workspace.
    pub(crate) fn conditions<'a>(&'a self, sql: &mut String, params: &mut Vec<Param<'a>>) {
        let mut add = |condition: &str, value: Param<'a>| {
            params.push(value);
            let _ = write!(sql, " AND {condition} ${}", params.len() + 1);
        };
        match &self.folder {
            Some(folder) => add("email.folder_id =", folder.into()),
            None => add("email.listed =", 1_i64.into()),
        }
        if let Some(thread) = &self.thread {
            add("email.thread_id =", thread.into());
        }
        if let Some(category) = self.category {
            add("email.category =", category.into());
        }
        if let Some(read) = self.is_read {
            add("email.read =", read.into());
        }
        if let Some(starred) = self.is_starred {
            add("email.starred =", starred.into());
        }
        if let Some(wanted) = self.has_attachment {
            add(if wanted { "email.attachment_count >" } else { "email.attachment_count =" }, 0_i64.into());
        }
        if let Some(start) = self.date_start {
            add("email.date >=", start.into());
        }
        if let Some(end) = self.date_end {
            add("email.date <", end.into());
        }
        if let Some(now) = self.held_after {
            add("coalesce(email.held_until, 0) <=", now.into());
        }
        for label in &self.labels {
            params.push(label.into());
            let _ = write!(
                sql,
                " AND EXISTS (SELECT 1 FROM email_label WHERE email_label.workspace_id = $1
                 AND email_label.mailbox_id = email.mailbox_id AND email_label.email_id = email.id
                 AND email_label.label_id = ${})",
                params.len() + 1
            );
        }
    }
}

/// Conditions on `email` as conditions on `newer`. They are expressions, so that SQLite keeps the index by thread
/// instead of scanning a folder or all unread emails.
fn of_newer(conditions: &str) -> String {
    let mut sql = conditions.replace("email.folder_id =", "email.folder_id || '' =");
    for column in ["listed", "read", "starred"] {
        sql = sql.replace(&format!("email.{column} ="), &format!("email.{column} + 0 ="));
    }
    sql.replace("email.", "newer.")
}

/// How a list is sorted.
#[derive(Clone, Copy, Debug)]
pub struct Sort {
    /// By what.
    pub column: SortColumn,
    /// In which direction.
    pub direction: SortDirection,
}

impl Sort {
    /// The columns of an order without ties, each backed by an index.
    const fn columns(self) -> &'static [&'static str] {
        match self.column {
            SortColumn::Date => &["email.date", "email.id"],
            SortColumn::Subject => &["email.subject_order", "email.id"],
            SortColumn::Sender => &["email.sender_order", "email.id"],
            SortColumn::Recipient => &["email.recipient_order", "email.id"],
            SortColumn::Read => &["email.read", "email.date", "email.id"],
            SortColumn::Starred => &["email.starred", "email.date", "email.id"],
            SortColumn::Id => &["email.id"],
        }
    }

    /// The position of an email in this order.
    pub fn position(self, mail: &EmailRecord) -> ListPosition {
        let date = mail.date.as_micros();
        let (number, text) = match self.column {
            SortColumn::Date => (vec![date], None),
            SortColumn::Subject => (vec![], Some(sort_form(&mail.subject))),
            SortColumn::Sender => (vec![], Some(sort_form(&mail.sender))),
            SortColumn::Recipient => (vec![], Some(sort_form(&mail.recipient))),
            SortColumn::Read => (vec![i64::from(mail.read), date], None),
            SortColumn::Starred => (vec![i64::from(mail.starred), date], None),
            SortColumn::Id => (vec![], None),
        };
        ListPosition { numbers: number, text, id: mail.id.clone() }
    }
}

/// The prefix of a text that sorting compares.
pub(super) fn sort_form(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).take(64).collect()
}

/// Where a page ended; encoded in its cursor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPosition {
    /// Leading numbers of the order.
    pub numbers: Vec<i64>,
    /// Leading text of the order.
    pub text: Option<String>,
    /// The id of the last email.
    pub id: EmailId,
}

impl ListPosition {
    fn params(&self) -> Vec<Param<'_>> {
        let numbers = self.numbers.iter().map(|number| Param::from(*number));
        numbers.chain(self.text.as_ref().map(Param::from)).chain([Param::from(&self.id)]).collect()
    }
}

/// A page of emails: those after `after`, or after the first `skip`.
pub async fn list(
    tx: &mut Tx,
    mailbox: &MailboxId,
    filter: &EmailFilter,
    sort: Sort,
    after: Option<&ListPosition>,
    skip: i64,
    most: i64,
) -> Result<Vec<EmailRecord>> {
    let (sql, params) = statement(mailbox, filter, sort, after, skip, most);
    tx.all(&sql, &params).await
}

fn statement<'a>(
    mailbox: &'a MailboxId,
    filter: &'a EmailFilter,
    sort: Sort,
    after: Option<&'a ListPosition>,
    skip: i64,
    most: i64,
) -> (String, Vec<Param<'a>>) {
    let mut sql =
        format!("SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2");
    let mut params: Vec<Param<'_>> = vec![mailbox.into()];
    filter.conditions(&mut sql, &mut params);
    let columns = sort.columns();
    let (direction, beyond) = match sort.direction {
        SortDirection::Ascending => ("ASC", ">"),
        SortDirection::Descending => ("DESC", "<"),
    };
    if let Some(position) = after {
        let values = position.params();
        if values.len() == columns.len() {
            let first = params.len() + 2;
            let numbered: Vec<String> =
                (first..first + values.len()).map(|number| format!("${number}")).collect();
            let _ = write!(sql, " AND ({}) {beyond} ({})", columns.join(", "), numbered.join(", "));
            params.extend(values);
        }
    }
    let order: Vec<String> = columns.iter().map(|column| format!("{column} {direction}")).collect();
    params.push(most.into());
    let _ = write!(sql, " ORDER BY {} LIMIT ${}", order.join(", "), params.len() + 1);
    if skip > 0 {
        params.push(skip.into());
        let _ = write!(sql, " OFFSET ${}", params.len() + 1);
    }
    (sql, params)
}

/// A page of the newest matching email of each thread that has one, newest first.
pub async fn list_threaded(
    tx: &mut Tx,
    mailbox: &MailboxId,
    filter: &EmailFilter,
    after: Option<(Timestamp, EmailId)>,
    skip: i64,
    most: i64,
) -> Result<Vec<EmailRecord>> {
    let (sql, params) = threaded_statement(mailbox, filter, after.as_ref(), skip, most);
    tx.all(&sql, &params).await
}

/// Emails come in the order of an index, and for each one a lookup by thread tells whether a newer one matches.
/// OFFSET 0 keeps PostgreSQL from joining the whole mailbox with itself.
fn threaded_statement<'a>(
    mailbox: &'a MailboxId,
    filter: &'a EmailFilter,
    after: Option<&'a (Timestamp, EmailId)>,
    skip: i64,
    most: i64,
) -> (String, Vec<Param<'a>>) {
    let mut params: Vec<Param<'_>> = vec![mailbox.into()];
    let mut conditions = String::new();
    filter.conditions(&mut conditions, &mut params);
    let newer = of_newer(&conditions);
    let mut sql = format!(
        "SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2{conditions}
         AND NOT EXISTS (SELECT 1 FROM email AS newer WHERE newer.workspace_id = $1 AND newer.mailbox_id = $2
           AND newer.thread_id = email.thread_id AND (newer.date, newer.id) > (email.date, email.id){newer}
           LIMIT 1 OFFSET 0)"
    );
    if let Some((at, id)) = after {
        params.extend([Param::from(*at), Param::from(id)]);
        let _ = write!(sql, " AND (email.date, email.id) < (${}, ${})", params.len(), params.len() + 1);
    }
    params.extend([Param::from(most), Param::from(skip)]);
    let (limit, offset) = (params.len(), params.len() + 1);
    let _ = write!(sql, " ORDER BY email.date DESC, email.id DESC LIMIT ${limit} OFFSET ${offset}");
    (sql, params)
}

/// How many threads have an email that matches.
pub async fn count_threaded(tx: &mut Tx, mailbox: &MailboxId, filter: &EmailFilter) -> Result<i64> {
    let mut sql =
        "SELECT count(DISTINCT email.thread_id) FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2"
            .to_owned();
    let mut params: Vec<Param<'_>> = vec![mailbox.into()];
    filter.conditions(&mut sql, &mut params);
    let found: Option<(i64,)> = tx.one(&sql, &params).await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// How many emails match a filter.
pub async fn count(tx: &mut Tx, mailbox: &MailboxId, filter: &EmailFilter) -> Result<i64> {
    if filter.is_plain() {
        let kept = count_from_counters(tx, mailbox, filter).await?;
        let Some(now) = filter.held_after else { return Ok(kept) };
        return Ok(kept - count_held(tx, mailbox, filter, now).await?);
    }
    let mut sql =
        "SELECT count(*) FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2".to_owned();
    let mut params: Vec<Param<'_>> = vec![mailbox.into()];
    filter.conditions(&mut sql, &mut params);
    let found: Option<(i64,)> = tx.one(&sql, &params).await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// How many of the matching emails are held at a time. Holds are short, so these are few.
async fn count_held(tx: &mut Tx, mailbox: &MailboxId, filter: &EmailFilter, now: Timestamp) -> Result<i64> {
    let all = EmailFilter { held_after: None, ..filter.clone() };
    let mut sql = "SELECT count(*) FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2
        AND email.held_until > $3"
        .to_owned();
    let mut params: Vec<Param<'_>> = vec![mailbox.into(), now.into()];
    all.conditions(&mut sql, &mut params);
    let found: Option<(i64,)> = tx.one(&sql, &params).await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// The same from the folder counters, whatever the size of the mailbox.
async fn count_from_counters(tx: &mut Tx, mailbox: &MailboxId, filter: &EmailFilter) -> Result<i64> {
    let figure = match filter.is_read {
        None => "total_count",
        Some(false) => "unread_count",
        Some(true) => "total_count - unread_count",
    };
    let mut params: Vec<Param<'_>> = vec![mailbox.into()];
    let folder = match &filter.folder {
        Some(folder) => {
            params.push(folder.into());
            "id = $3"
        }
        None => "id NOT IN ('trash', 'spam')",
    };
    let sql = format!(
        "SELECT CAST(coalesce(sum({figure}), 0) AS BIGINT) FROM folder WHERE workspace_id = $1 AND mailbox_id = $2 AND {folder}"
    );
    let found: Option<(i64,)> = tx.one(&sql, &params).await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// The emails with these ids, in no order.
pub async fn select(tx: &mut Tx, mailbox: &MailboxId, ids: &[EmailId]) -> Result<Vec<EmailRecord>> {
    let nothing = EmailId::from("");
    let sql = format!(
        "SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2 AND email.id IN ({})",
        list_placeholders(3)
    );
    let mut found = Vec::with_capacity(ids.len());
    for some in ids.chunks(LIST_LENGTH) {
        let mut params: Vec<Param<'_>> = vec![mailbox.into()];
        params.extend(list_params(some.iter(), &nothing));
        found.extend(tx.all::<EmailRecord>(&sql, &params).await?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DatabaseLocation, Db};

    /// SQLite's query plan for a list: one line per step.
    async fn plan(db: &Db, filter: EmailFilter, sort: Sort, after: Option<ListPosition>) -> Vec<String> {
        let steps: Result<Vec<(i64, i64, i64, String)>> = db
            .read(&"ws_1".into(), async move |tx| {
                let mailbox = MailboxId::from("mbx_1");
                let (sql, params) = statement(&mailbox, &filter, sort, after.as_ref(), 0, 26);
                tx.all(&format!("EXPLAIN QUERY PLAN {sql}"), &params).await
            })
            .await;
        steps.unwrap().into_iter().map(|(_, _, _, step)| step).collect()
    }

    /// A threaded list with other filters scans an index in the order of the result, and looks up newer emails by
    /// thread.
    // rules: READ-5, READ-6
    #[tokio::test(flavor = "multi_thread")]
    async fn threaded_lists_look_up_newer_emails_by_thread() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&DatabaseLocation::Sqlite(folder.path().join("plans"))).await.unwrap();
        db.migrate(Timestamp::from_micros(0)).await.unwrap();
        for filter in [
            EmailFilter { is_read: Some(false), ..EmailFilter::default() },
            EmailFilter { is_starred: Some(true), folder: Some("inbox".into()), ..EmailFilter::default() },
            EmailFilter {
                category: Some(Category::Technical),
                labels: vec!["l".into()],
                ..EmailFilter::default()
            },
            EmailFilter {
                has_attachment: Some(true),
                held_after: Some(Timestamp::from_micros(1)),
                ..EmailFilter::default()
            },
        ] {
            let shown = format!("{filter:?}");
            let steps: Result<Vec<(i64, i64, i64, String)>> = db
                .read(&"ws_1".into(), async move |tx| {
                    let mailbox = MailboxId::from("mbx_1");
                    let after = (Timestamp::from_micros(1), EmailId::from("eml_1"));
                    let (sql, params) = threaded_statement(&mailbox, &filter, Some(&after), 0, 26);
                    tx.all(&format!("EXPLAIN QUERY PLAN {sql}"), &params).await
                })
                .await;
            let steps: Vec<String> = steps.unwrap().into_iter().map(|(_, _, _, step)| step).collect();
            assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{shown}: {steps:#?}");
            let newer = steps.iter().find(|step| step.contains("SEARCH newer")).unwrap();
            assert!(
                newer.contains("email_thread (workspace_id=? AND mailbox_id=? AND thread_id=?"),
                "{newer}"
            );
        }
    }

    /// Every list is read from an index in the order of the result: nothing is sorted, so nothing beyond the page is
    /// read for its order.
    // rules: READ-6
    #[tokio::test(flavor = "multi_thread")]
    async fn no_list_is_sorted_on_read() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&DatabaseLocation::Sqlite(folder.path().join("plans"))).await.unwrap();
        db.migrate(Timestamp::from_micros(0)).await.unwrap();
        let filters = [
            EmailFilter::default(),
            EmailFilter { folder: Some("inbox".into()), ..EmailFilter::default() },
            EmailFilter { is_read: Some(false), ..EmailFilter::default() },
            EmailFilter { is_starred: Some(true), ..EmailFilter::default() },
            EmailFilter { held_after: Some(Timestamp::from_micros(1)), ..EmailFilter::default() },
        ];
        let columns = [
            SortColumn::Date,
            SortColumn::Subject,
            SortColumn::Sender,
            SortColumn::Recipient,
            SortColumn::Read,
            SortColumn::Starred,
            SortColumn::Id,
        ];
        for filter in &filters {
            for column in columns {
                for direction in [SortDirection::Ascending, SortDirection::Descending] {
                    let sort = Sort { column, direction };
                    let numbers = match column {
                        SortColumn::Date => vec![1],
                        SortColumn::Read | SortColumn::Starred => vec![1, 1],
                        _ => vec![],
                    };
                    let text =
                        matches!(column, SortColumn::Subject | SortColumn::Sender | SortColumn::Recipient);
                    let position = ListPosition {
                        numbers,
                        text: text.then(|| "x".to_owned()),
                        id: EmailId::from("eml_1"),
                    };
                    for after in [None, Some(position)] {
                        let steps = plan(&db, filter.clone(), sort, after).await;
                        let sorts = steps.iter().any(|step| step.contains("TEMP B-TREE"));
                        assert!(!sorts, "{filter:?} {sort:?}: {steps:#?}");
                    }
                }
            }
        }
    }
}
