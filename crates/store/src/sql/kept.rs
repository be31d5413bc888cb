//! Statements with their parameters, kept to be sent later: with the next one, at the end of a commit, or in a later one.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::{Hash, Hasher},
};

use super::value::Param;
use crate::error::{Error, Result};

/// A parameter that is kept for a statement that is sent later.
#[derive(Clone, Debug)]
enum KeptParam {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl TryFrom<&Param<'_>> for KeptParam {
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

fn keep(params: &[Param<'_>]) -> Result<Vec<KeptParam>> {
    params.iter().map(KeptParam::try_from).collect()
}

impl PartialEq for KeptParam {
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
impl Eq for KeptParam {}

impl Hash for KeptParam {
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

/// A statement that adds amounts to a row, kept for later.
#[derive(Clone, Debug)]
pub(super) struct KeptSum {
    pub(super) sql: &'static str,
    row: Vec<KeptParam>,
    amounts: Vec<i64>,
}

impl KeptSum {
    pub(super) fn new(sql: &'static str, row: &[Param<'_>], amounts: &[i64]) -> Result<Self> {
        Ok(Self { sql, row: keep(row)?, amounts: amounts.to_vec() })
    }

    /// What names the row, then the amounts.
    pub(super) fn params(&self) -> Vec<Param<'_>> {
        let amounts = self.amounts.iter().map(|amount| Param::Integer(*amount));
        self.row.iter().map(KeptParam::as_param).chain(amounts).collect()
    }
}

/// One statement for all that add to the same row, in the order of the first of each.
pub(super) fn added_up(sums: Vec<KeptSum>) -> Vec<KeptSum> {
    let mut places: HashMap<(&'static str, Vec<KeptParam>), usize> = HashMap::new();
    let mut added: Vec<KeptSum> = Vec::new();
    for sum in sums {
        match places.entry((sum.sql, sum.row.clone())) {
            Entry::Vacant(place) => {
                place.insert(added.len());
                added.push(sum);
            }
            Entry::Occupied(place) => {
                for (all, more) in added[*place.get()].amounts.iter_mut().zip(sum.amounts) {
                    *all += more;
                }
            }
        }
    }
    added
}

/// A statement that is kept for later.
#[derive(Clone, Debug)]
pub(super) struct KeptStatement {
    pub(super) sql: String,
    params: Vec<KeptParam>,
}

impl KeptStatement {
    pub(super) fn new(sql: &str, params: &[Param<'_>]) -> Result<Self> {
        Ok(Self { sql: sql.to_owned(), params: keep(params)? })
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        self.params.iter().map(KeptParam::as_param).collect()
    }

    /// The bytes of its parameters, as far as they may be many.
    pub(super) fn size(&self) -> usize {
        self.params.iter().map(KeptParam::size).sum()
    }
}

impl KeptParam {
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
