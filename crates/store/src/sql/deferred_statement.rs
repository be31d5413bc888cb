//! Statements with owned parameters, to be sent later: with the next one, at the end of a commit, or in a later one.

use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
    hash::{Hash, Hasher},
};

use super::value::Param;
use crate::error::{Error, Result};

/// A parameter with its own data.
#[derive(Clone, Debug)]
enum OwnedParam {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl TryFrom<&Param<'_>> for OwnedParam {
    type Error = Error;

    fn try_from(param: &Param<'_>) -> Result<Self> {
        Ok(match param {
            Param::Null => Self::Null,
            Param::Integer(value) => Self::Integer(*value),
            Param::Real(value) => Self::Real(*value),
            Param::Text(value) => Self::Text((*value).to_owned()),
            Param::Bytes(value) => Self::Bytes(value.to_vec()),
            Param::Json(value) => Self::Text(value.to_json().map_err(|error| Error::Internal(error.into()))?),
        })
    }
}

fn to_owned_params(params: &[Param<'_>]) -> Result<Vec<OwnedParam>> {
    params.iter().map(OwnedParam::try_from).collect()
}

impl PartialEq for OwnedParam {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Integer(one), Self::Integer(two)) => one == two,
            (Self::Real(one), Self::Real(two)) => one.to_bits() == two.to_bits(),
            (Self::Text(one), Self::Text(two)) => one == two,
            (Self::Bytes(one), Self::Bytes(two)) => one == two,
            _ => false,
        }
    }
}
impl Eq for OwnedParam {}

impl Hash for OwnedParam {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Null => {}
            Self::Integer(value) => value.hash(state),
            Self::Real(value) => value.to_bits().hash(state),
            Self::Text(value) => value.hash(state),
            Self::Bytes(value) => value.hash(state),
        }
    }
}

/// A statement that adds amounts to a row, to be sent later.
#[derive(Clone, Debug)]
pub(super) struct DeferredIncrement {
    pub(super) sql: &'static str,
    row: Vec<OwnedParam>,
    amounts: Vec<i64>,
}

impl DeferredIncrement {
    pub(super) fn new(sql: &'static str, row: &[Param<'_>], amounts: &[i64]) -> Result<Self> {
        Ok(Self { sql, row: to_owned_params(row)?, amounts: amounts.to_vec() })
    }

    /// The row's keys, then the amounts.
    pub(super) fn params(&self) -> Vec<Param<'_>> {
        let amounts = self.amounts.iter().map(|amount| Param::Integer(*amount));
        self.row.iter().map(OwnedParam::as_param).chain(amounts).collect()
    }
}

/// Merges statements that add to the same row, in the order of the first of each.
pub(super) fn merge_increments(increments: Vec<DeferredIncrement>) -> Vec<DeferredIncrement> {
    let mut positions: HashMap<(&'static str, Vec<OwnedParam>), usize> = HashMap::new();
    let mut merged: Vec<DeferredIncrement> = Vec::new();
    for increment in increments {
        match positions.entry((increment.sql, increment.row.clone())) {
            Entry::Vacant(position) => {
                position.insert(merged.len());
                merged.push(increment);
            }
            Entry::Occupied(position) => {
                for (all, more) in merged[*position.get()].amounts.iter_mut().zip(increment.amounts) {
                    *all += more;
                }
            }
        }
    }
    merged
}

/// Maximum rows of a combined INSERT: one statement is prepared for each number of rows.
const MAX_COMBINED_ROWS: usize = 8;

/// Combines those that insert a row each into the same table, so that they are one statement.
pub(super) fn combine_increments(
    increments: &[DeferredIncrement],
) -> Vec<(Cow<'static, str>, Vec<Param<'_>>)> {
    let mut by_sql: Vec<(&'static str, Vec<&DeferredIncrement>)> = Vec::new();
    for increment in increments {
        match by_sql.iter_mut().find(|(sql, _)| *sql == increment.sql) {
            Some((_, rows)) => rows.push(increment),
            None => by_sql.push((increment.sql, vec![increment])),
        }
    }
    let mut combined = Vec::new();
    for (sql, rows) in by_sql {
        let width = rows.first().map_or(0, |row| row.row.len() + row.amounts.len());
        let values = values_of_row(1, width);
        match sql.split_once(&format!("VALUES {values}")) {
            Some((insert, conflict)) => {
                for some in rows.chunks(MAX_COMBINED_ROWS) {
                    let all: Vec<String> =
                        (0..some.len()).map(|row| values_of_row(row * width + 1, width)).collect();
                    let sql = format!("{insert}VALUES {}{conflict}", all.join(", "));
                    combined.push((Cow::Owned(sql), some.iter().flat_map(|row| row.params()).collect()));
                }
            }
            None => combined.extend(rows.into_iter().map(|row| (Cow::Borrowed(sql), row.params()))),
        }
    }
    combined
}

/// The placeholders of a row whose first one has this number.
fn values_of_row(first: usize, width: usize) -> String {
    let numbers: Vec<String> = (first..first + width).map(|number| format!("${number}")).collect();
    format!("({})", numbers.join(", "))
}

/// A statement to be sent later.
#[derive(Clone, Debug)]
pub(super) struct DeferredStatement {
    pub(super) sql: String,
    params: Vec<OwnedParam>,
}

impl DeferredStatement {
    pub(super) fn new(sql: &str, params: &[Param<'_>]) -> Result<Self> {
        Ok(Self { sql: sql.to_owned(), params: to_owned_params(params)? })
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        self.params.iter().map(OwnedParam::as_param).collect()
    }

    /// The bytes of its variable-length parameters.
    pub(super) fn size(&self) -> usize {
        self.params.iter().map(OwnedParam::size).sum()
    }
}

impl OwnedParam {
    fn size(&self) -> usize {
        match self {
            Self::Null | Self::Integer(_) | Self::Real(_) => 0,
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    fn as_param(&self) -> Param<'_> {
        match self {
            Self::Null => Param::Null,
            Self::Integer(value) => Param::Integer(*value),
            Self::Real(value) => Param::Real(*value),
            Self::Text(value) => Param::Text(value),
            Self::Bytes(value) => Param::Bytes(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADD: &str =
        "INSERT INTO t (a, b, c) VALUES ($1, $2, $3) ON CONFLICT (a, b) DO UPDATE SET c = t.c + excluded.c";
    const SET: &str = "UPDATE t SET c = c + $3 WHERE a = $1 AND b = $2";

    #[test]
    fn rows_of_one_table_are_inserted_together() {
        let add = |sql, name: &str| DeferredIncrement::new(sql, &["w".into(), name.into()], &[1]).unwrap();
        let all = [add(ADD, "x"), add(SET, "x"), add(ADD, "y"), add(SET, "y")];
        let combined = combine_increments(&all);
        let texts: Vec<(&str, usize)> = combined.iter().map(|(sql, params)| (&**sql, params.len())).collect();
        assert_eq!(
            texts,
            [
                (
                    "INSERT INTO t (a, b, c) VALUES ($1, $2, $3), ($4, $5, $6) \
                     ON CONFLICT (a, b) DO UPDATE SET c = t.c + excluded.c",
                    6
                ),
                (SET, 3),
                (SET, 3)
            ]
        );
        let many: Vec<DeferredIncrement> = (0..20).map(|number| add(ADD, &number.to_string())).collect();
        let rows: Vec<usize> = combine_increments(&many).iter().map(|(_, params)| params.len() / 3).collect();
        assert_eq!(rows, [8, 8, 4]);
    }
}
