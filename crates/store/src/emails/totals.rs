//! How many emails or threads match a filter: from counters where that is possible.

use std::fmt::Write as _;

use model::{MailboxId, Timestamp};

use super::list::EmailFilter;
use crate::{
    Param, Select, Tx,
    error::Result,
    mailboxes::{MailboxFigure, MailboxKey, MailboxName, has_folder, select_figure},
};

/// How many emails match a filter.
pub async fn count(tx: &mut Tx, mailbox: &MailboxId, filter: &EmailFilter) -> Result<i64> {
    let key = MailboxKey::Id(mailbox);
    let mut params = vec![key.param()];
    let sql = total(key.id(), filter, &mut params);
    let found: Option<(i64,)> = tx.one(&sql, &params).await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// Selects a mailbox with the number of emails that match a filter, and whether it has the filter's folder.
pub fn select_total<'a>(named: &'a MailboxName, filter: &'a EmailFilter) -> Select<'a, MailboxFigure> {
    select_figure(named, |params| {
        (has_folder(filter.folder.as_ref(), params), total("mailbox.id", filter, params))
    })
}

/// The same with the number of threads that have a matching email.
pub fn select_newest_total<'a>(named: &'a MailboxName, filter: &'a EmailFilter) -> Select<'a, MailboxFigure> {
    select_figure(named, |params| {
        let has_folder = has_folder(filter.folder.as_ref(), params);
        let mut sql = "SELECT count(DISTINCT email.thread_id) FROM email
            WHERE email.workspace_id = $1 AND email.mailbox_id = mailbox.id"
            .to_owned();
        filter.conditions("mailbox.id", &mut sql, params);
        (has_folder, sql)
    })
}

fn total<'a>(mailbox: &str, filter: &'a EmailFilter, params: &mut Vec<Param<'a>>) -> String {
    if filter.is_plain() {
        let all = total_from_counters(mailbox, filter, params);
        return match filter.held_after {
            Some(now) => format!("SELECT ({all}) - ({})", total_held(mailbox, filter, now, params)),
            None => all,
        };
    }
    let mut sql =
        format!("SELECT count(*) FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = {mailbox}");
    filter.conditions(mailbox, &mut sql, params);
    sql
}

/// How many of the matching emails are held at a time. Holds are short, so these are few.
fn total_held<'a>(
    mailbox: &str,
    filter: &'a EmailFilter,
    now: Timestamp,
    params: &mut Vec<Param<'a>>,
) -> String {
    params.push(now.into());
    let mut sql = format!(
        "SELECT count(*) FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = {mailbox}
         AND email.held_until > ${}",
        params.len() + 1
    );
    filter.conditions_with_held(mailbox, &mut sql, params);
    sql
}

/// The number of emails from the folder counters, whatever the size of the mailbox.
fn total_from_counters<'a>(mailbox: &str, filter: &'a EmailFilter, params: &mut Vec<Param<'a>>) -> String {
    let figure = match filter.is_read {
        None => "total_count",
        Some(false) => "unread_count",
        Some(true) => "total_count - unread_count",
    };
    let mut sql = format!(
        "SELECT CAST(coalesce(sum({figure}), 0) AS BIGINT) FROM folder
         WHERE folder.workspace_id = $1 AND folder.mailbox_id = {mailbox} AND folder.id "
    );
    if let Some(folder) = &filter.folder {
        params.push(folder.into());
        let _ = write!(sql, "= ${}", params.len() + 1);
    } else {
        sql.push_str("NOT IN ('trash', 'spam')");
    }
    sql
}
