//! Search clauses in the query languages of both engines.

use std::fmt::Write as _;

use model::{
    MailboxId,
    search::query::{Clause, Field},
};

use super::scope::{SCOPE_START, prefix};

/// Whether a clause could also match the word of a mailbox.
fn could_be_scope(clause: &Clause) -> bool {
    match clause.words.as_slice() {
        [word] if clause.prefix && SCOPE_START.starts_with(word.as_str()) => true,
        [word] => word.starts_with(SCOPE_START),
        _ => false,
    }
}

/// A query in FTS5 syntax. Words have letters and digits only, so nothing needs escaping.
///
/// A query with column filters makes FTS5 read every text it passes, also those it skips, so words for any field have
/// none.
pub(super) fn sqlite_query(mailbox: &MailboxId, clauses: &[Clause]) -> String {
    let prefix = prefix(mailbox);
    // Exclusions need something to exclude from: all texts of the mailbox have its prefix as a word.
    let only_excludes = clauses.iter().all(|clause| clause.negated);
    let mut query = if only_excludes { format!("\"{prefix}\"") } else { String::new() };
    // NOT is binary, so exclusions come last.
    for negated in [false, true] {
        for clause in clauses.iter().filter(|clause| clause.negated == negated) {
            let field = match clause.field {
                Field::Any => "",
                Field::Subject => "subject : ",
                Field::Sender => "sender : ",
                Field::Recipient => "recipient : ",
            };
            let words: Vec<String> = clause.words.iter().map(|word| format!("{prefix}{word}")).collect();
            let star = if clause.prefix { " *" } else { "" };
            let wanted = format!("({field}\"{}\"{star})", words.join(" "));
            query = match (query.is_empty(), negated) {
                (true, _) => wanted,
                (false, false) => format!("({query}) AND {wanted}"),
                (false, true) => format!("({query}) NOT {wanted}"),
            };
        }
    }
    query
}

/// A query in `tsquery` syntax.
///
/// The GIN index has words but no weights, so a query with weights makes PostgreSQL read every text that may match.
/// Words for any field have none, unless one could be a mailbox's, which has no weight.
///
/// It begins with an operator, before which the word of the mailbox belongs.
pub(super) fn postgres_query(clauses: &[Clause]) -> String {
    let mut query = String::new();
    for clause in clauses {
        let weight = match clause.field {
            Field::Any if could_be_scope(clause) => "ABCD",
            Field::Any => "",
            Field::Subject => "A",
            Field::Sender => "B",
            Field::Recipient => "C",
        };
        let last = clause.words.len().saturating_sub(1);
        let words: Vec<String> = clause
            .words
            .iter()
            .enumerate()
            .map(|(index, word)| {
                let star = if clause.prefix && index == last { "*" } else { "" };
                let colon = if star.is_empty() && weight.is_empty() { "" } else { ":" };
                format!("'{word}'{colon}{star}{weight}")
            })
            .collect();
        let _ = write!(query, " & {}({})", if clause.negated { "!" } else { "" }, words.join(" <-> "));
    }
    query
}

#[cfg(test)]
mod tests {
    use model::search::query::Query;

    use super::*;

    #[test]
    fn queries_of_both_engines() {
        let mailbox = MailboxId::from("mbx_1");
        let clauses = Query::parse("past \"due date\" -subject:draft from:ali*").unwrap().clauses;
        let own = |text: &str| text.replace('~', &prefix(&mailbox));
        assert_eq!(
            sqlite_query(&mailbox, &clauses),
            own(
                "((((\"~past\")) AND (\"~due ~date\")) AND (sender : \"~ali\" *)) NOT (subject : \"~draft\")"
            )
        );
        let excludes = Query::parse("-draft").unwrap().clauses;
        assert_eq!(sqlite_query(&mailbox, &excludes), own("(\"~\") NOT (\"~draft\")"));
        let like_scope = Query::parse("mbx1 mb* mbx11 box").unwrap().clauses;
        assert_eq!(postgres_query(&clauses), " & ('past') & ('due' <-> 'date') & !('draft':A) & ('ali':*B)");
        assert_eq!(postgres_query(&like_scope), " & ('mbx1':ABCD) & ('mb':*ABCD) & ('mbx11':ABCD) & ('box')",);
    }
}
