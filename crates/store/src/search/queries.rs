//! Search clauses in the query languages of both engines.

use std::fmt::Write as _;

use model::{
    MailboxId,
    search::query::{Clause, Field},
};

use super::scope::scope;

/// Whether a clause would also match the word of the mailbox.
fn could_be(clause: &Clause, scope: &str) -> bool {
    match clause.words.as_slice() {
        [word] if clause.prefix => scope.starts_with(word.as_str()),
        [word] => scope == *word,
        _ => false,
    }
}

/// A query in FTS5 syntax. Words have letters and digits only, so nothing needs escaping.
///
/// A query with column filters makes FTS5 read every text it passes, also those it skips. So the mailbox's word and
/// words for any field have no column filter: other mailboxes are excluded by their rows, and only a word that equals
/// the mailbox's names its columns.
pub(super) fn sqlite_query(mailbox: &MailboxId, clauses: &[Clause]) -> String {
    let scope = scope(mailbox).to_ascii_lowercase();
    let mut query = format!("\"{scope}\"");
    // NOT is binary, so exclusions come last.
    for negated in [false, true] {
        for clause in clauses.iter().filter(|clause| clause.negated == negated) {
            let field = match clause.field {
                Field::Any if could_be(clause, &scope) => "{subject sender recipient body} : ",
                Field::Any => "",
                Field::Subject => "subject : ",
                Field::Sender => "sender : ",
                Field::Recipient => "recipient : ",
            };
            let joint = if negated { "NOT" } else { "AND" };
            let star = if clause.prefix { " *" } else { "" };
            query = format!("({query}) {joint} ({field}\"{}\"{star})", clause.words.join(" "));
        }
    }
    query
}

/// A query in `tsquery` syntax.
///
/// The GIN index has words but no weights, so a query with weights makes PostgreSQL read every text that may match.
/// Words for any field have none, unless one equals the mailbox's, which has no weight.
pub(super) fn postgres_query(mailbox: &MailboxId, clauses: &[Clause]) -> String {
    let scope = scope(mailbox);
    let like = scope.to_ascii_lowercase();
    let mut query = format!("'{scope}'");
    for clause in clauses {
        let weight = match clause.field {
            Field::Any if could_be(clause, &like) => "ABCD",
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
        assert_eq!(
            sqlite_query(&mailbox, &clauses),
            "((((\"mbx1\") AND (\"past\")) AND (\"due date\")) AND (sender : \"ali\" *)) NOT (subject : \"draft\")"
        );
        let like_scope = Query::parse("mbx1 mb* mbx11").unwrap().clauses;
        assert_eq!(
            sqlite_query(&mailbox, &like_scope),
            "(((\"mbx1\") AND ({subject sender recipient body} : \"mbx1\")) AND ({subject sender recipient body} : \"mb\" *)) AND (\"mbx11\")",
            "the mailbox's own word is no find"
        );
        assert_eq!(
            postgres_query(&mailbox, &clauses),
            "'mbx1' & ('past') & ('due' <-> 'date') & !('draft':A) & ('ali':*B)"
        );
        assert_eq!(
            postgres_query(&mailbox, &like_scope),
            "'mbx1' & ('mbx1':ABCD) & ('mb':*ABCD) & ('mbx11')",
            "nor there"
        );
    }
}
