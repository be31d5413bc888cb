//! Lists of emails: filters, sorting, pages whose cost does not depend on the size of the mailbox.

use std::fmt::Write as _;

use model::{
    EmailId, FolderId, MailboxId, ThreadId, Timestamp,
    emails::{Category, SortColumn, SortDirection},
};

use serde::{Deserialize, Serialize};

use super::record::{COLUMNS, EmailRecord};
use crate::{
    Param, Select, Tx,
    error::Result,
    mailboxes::MailboxKey,
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
    /// Only emails with all labels of these slugs. No email has an unknown one.
    pub labels: Vec<String>,
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
    /// `mailbox` is the mailbox in it, as an expression.
    pub(crate) fn conditions<'a>(&'a self, mailbox: &str, sql: &mut String, params: &mut Vec<Param<'a>>) {
        self.conditions_with_held(mailbox, sql, params);
        if let Some(now) = self.held_after {
            params.push(now.into());
            let _ = write!(sql, " AND coalesce(email.held_until, 0) <= ${}", params.len() + 1);
        }
    }

    /// The same without the condition that leaves out what is held.
    pub(super) fn conditions_with_held<'a>(
        &'a self,
        mailbox: &str,
        sql: &mut String,
        params: &mut Vec<Param<'a>>,
    ) {
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
        for slug in &self.labels {
            params.push(slug.into());
            let _ = write!(
                sql,
                " AND EXISTS (SELECT 1 FROM email_label WHERE email_label.workspace_id = $1
                 AND email_label.mailbox_id = email.mailbox_id AND email_label.email_id = email.id
                 AND email_label.label_id = (SELECT label.id FROM label WHERE label.workspace_id = $1
                   AND label.mailbox_id = {mailbox} AND label.slug = ${}))",
                params.len() + 1
            );
        }
    }
}

/// Conditions on `email` as conditions on `newer`. They are expressions, so that SQLite keeps the index by thread
/// instead of scanning a folder or all unread emails.
pub(super) fn of_newer(conditions: &str) -> String {
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
    let (sql, params) = statement(mailbox.into(), filter, sort, after, skip, most);
    tx.all(&sql, &params).await
}

/// Selects the same.
pub fn select_list<'a>(
    mailbox: MailboxKey<'a>,
    filter: &'a EmailFilter,
    sort: Sort,
    after: Option<&'a ListPosition>,
    skip: i64,
    most: i64,
) -> Select<'a, EmailRecord> {
    let (sql, params) = statement(mailbox, filter, sort, after, skip, most);
    Select::new(sql, params)
}

fn statement<'a>(
    mailbox: MailboxKey<'a>,
    filter: &'a EmailFilter,
    sort: Sort,
    after: Option<&'a ListPosition>,
    skip: i64,
    most: i64,
) -> (String, Vec<Param<'a>>) {
    let (id, mut params) = (mailbox.id(), vec![mailbox.param()]);
    let mut sql =
        format!("SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = {id}");
    filter.conditions(id, &mut sql, &mut params);
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
                let (sql, params) = statement((&mailbox).into(), &filter, sort, after.as_ref(), 0, 26);
                tx.all(&format!("EXPLAIN QUERY PLAN {sql}"), &params).await
            })
            .await;
        steps.unwrap().into_iter().map(|(_, _, _, step)| step).collect()
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
