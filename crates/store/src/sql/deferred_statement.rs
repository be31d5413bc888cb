//! Statements with owned parameters, to be sent later: with the next one, at the end of a commit, or in a later one.

use std::{
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
            Param::List(_) => return Err(Error::Internal("an array is not sent later".into())),
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

    /// Whether both are the same statement of the same workspace.
    pub(super) fn is_same_statement(&self, other: &Self) -> bool {
        self.sql == other.sql && self.row.first() == other.row.first()
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

/// A statement to be sent later: for one row of parameters, or for several.
#[derive(Clone, Debug)]
pub(super) struct DeferredStatement {
    pub(super) sql: String,
    /// Row after row.
    params: Vec<OwnedParam>,
    rows: usize,
}

impl DeferredStatement {
    pub(super) fn new(sql: &str, params: &[Param<'_>]) -> Result<Self> {
        Ok(Self { sql: sql.to_owned(), params: to_owned_params(params)?, rows: 1 })
    }

    /// A statement that is to run for each row, with the same number of parameters in each.
    pub(super) fn of_rows(sql: &str, rows: &[Vec<Param<'_>>]) -> Result<Self> {
        let params = rows.iter().flatten().map(OwnedParam::try_from).collect::<Result<_>>()?;
        Ok(Self { sql: sql.to_owned(), params, rows: rows.len() })
    }

    /// For how many rows it runs.
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    /// The values of each parameter in all rows.
    pub(super) fn columns(&self) -> Vec<Vec<Param<'_>>> {
        let width = self.params.len() / self.rows.max(1);
        let column = |at: usize| self.params.iter().skip(at).step_by(width).map(OwnedParam::as_param);
        (0..width).map(|at| column(at).collect()).collect()
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
