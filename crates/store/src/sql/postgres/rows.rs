//! Statements for several rows of parameters: each parameter is sent as an array.
//!
//! Many rows of one statement cost a fraction of as many statements: it is parsed, planned, locked for and answered
//! once. The text is made from that for one row, so both cannot differ.

use std::{error::Error as StdError, fmt::Write as _};

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::sql::{deferred_statement::DeferredStatement, value::Param};

/// A parameter of a statement: one value, or an array with the values of all rows.
#[derive(Debug)]
pub(super) enum Argument<'a> {
    One(Param<'a>),
    Column(Vec<Param<'a>>),
}

impl ToSql for Argument<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Self::One(value) => value.to_sql(ty, out),
            Self::Column(values) => Param::List(values).to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// The parameters of a statement. The first, the workspace, is the same for all rows.
pub(super) fn arguments(statement: &DeferredStatement) -> Vec<Argument<'_>> {
    if statement.rows() == 1 {
        return statement.params().into_iter().map(Argument::One).collect();
    }
    let mut columns = statement.columns().into_iter();
    let workspace = columns.next().and_then(|column| column.first().copied()).map(Argument::One);
    workspace.into_iter().chain(columns.map(Argument::Column)).collect()
}

/// The text of a statement for many rows, made from the text for one and the types of its parameters: of an INSERT with
/// VALUES, or of an UPDATE with WHERE. `None` for any other.
pub(super) fn for_many(sql: &str, types: &[Type]) -> Option<String> {
    let mut source = String::from("UNNEST(");
    let mut names = String::new();
    for (number, ty) in types.iter().enumerate().skip(1).map(|(index, ty)| (index + 1, ty)) {
        let comma = if number == 2 { "" } else { ", " };
        let _ = write!(source, "{comma}CAST(${number} AS {}[])", ty.name());
        let _ = write!(names, "{comma}c{number}");
    }
    let _ = write!(source, ") AS r ({names})");
    let workspace = format!("CAST($1 AS {})", types.first()?.name());
    if let Some((head, rest)) = sql.split_once("VALUES (") {
        let end = closing(rest)?;
        let (values, tail) = (of_row(&rest[..end], &workspace), &rest[end + 1..]);
        return Some(format!("{head}SELECT {values} FROM {source}{tail}"));
    }
    let (changes, condition) = sql.split_once("WHERE ")?;
    let (changes, condition) = (of_row(changes, &workspace), of_row(condition, &workspace));
    Some(format!("{changes}FROM {source} WHERE {condition}"))
}

/// Where a parenthesis closes that was open before the text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.bytes().position(|byte| {
        depth += i32::from(byte == b'(') - i32::from(byte == b')');
        depth == 0
    })
}

/// Replaces each parameter by the column of a row, and the first by the workspace.
fn of_row(text: &str, workspace: &str) -> String {
    let mut parts = text.split('$');
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = part.split_at(digits);
        if number == "1" {
            all.push_str(workspace);
        } else {
            all.push_str("r.c");
            all.push_str(number);
        }
        all.push_str(rest);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_insert_selects_its_rows_from_arrays() {
        let sql =
            "INSERT INTO door (workspace_id, id, words) VALUES ($1, $2, CAST(CAST($3 AS TEXT) AS tsvector))
             ON CONFLICT (workspace_id, id) DO NOTHING";
        assert_eq!(
            for_many(sql, &[Type::TEXT, Type::INT8, Type::TEXT]).unwrap(),
            "INSERT INTO door (workspace_id, id, words) SELECT CAST($1 AS text), r.c2, CAST(CAST(r.c3 AS TEXT) AS tsvector) \
             FROM UNNEST(CAST($2 AS int8[]), CAST($3 AS text[])) AS r (c2, c3)
             ON CONFLICT (workspace_id, id) DO NOTHING"
        );
    }

    #[test]
    fn an_update_joins_its_rows() {
        let sql = "UPDATE door SET opened = opened + $3 WHERE workspace_id = $1 AND id = $2";
        assert_eq!(
            for_many(sql, &[Type::TEXT, Type::TEXT, Type::INT8]).unwrap(),
            "UPDATE door SET opened = opened + r.c3 FROM UNNEST(CAST($2 AS text[]), CAST($3 AS int8[])) AS r (c2, c3) \
             WHERE workspace_id = CAST($1 AS text) AND id = r.c2"
        );
        assert_eq!(for_many("SELECT 1", &[Type::TEXT]), None);
    }

    #[test]
    fn only_what_differs_between_rows_is_an_array() {
        let rows = [vec![Param::Text("ws"), Param::Integer(1)], vec![Param::Text("ws"), Param::Null]];
        let statement = DeferredStatement::of_rows("x", &rows).unwrap();
        let arguments = arguments(&statement);
        assert!(matches!(&arguments[..], [
            Argument::One(Param::Text("ws")),
            Argument::Column(values),
        ] if matches!(values[..], [Param::Integer(1), Param::Null])));
    }
}
