//! Values on their way into and out of SQL, the same for both engines.
//!
//! Five column types are in use: TEXT, BIGINT (also times and booleans), DOUBLE PRECISION, BYTEA and JSON kept as TEXT.

use std::{
    collections::{HashMap, hash_map::Entry},
    error::Error as StdError,
    hash::{Hash, Hasher},
};

use bytes::{BufMut, BytesMut};
use model::{Id, Kind, Timestamp};
use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::error::{Error, Result};

/// One parameter of a statement, borrowed from the caller.
#[derive(Clone, Copy, Debug)]
pub enum Param<'a> {
    /// SQL NULL.
    Null,
    /// A BIGINT.
    Integer(i64),
    /// A DOUBLE PRECISION.
    Real(f64),
    /// A TEXT.
    Text(&'a str),
    /// A BYTEA or BLOB.
    Bytes(&'a [u8]),
}

/// A parameter that is kept for a statement that is sent later.
#[derive(Clone, Debug)]
enum KeptParam {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&Param<'_>> for KeptParam {
    fn from(param: &Param<'_>) -> Self {
        match param {
            Param::Null => Self::Null,
            Param::Integer(value) => Self::Integer(*value),
            Param::Real(value) => Self::Real(*value),
            Param::Text(value) => Self::Text((*value).to_owned()),
            Param::Bytes(value) => Self::Bytes(value.to_vec()),
        }
    }
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
    pub(super) fn new(sql: &'static str, row: &[Param<'_>], amounts: &[i64]) -> Self {
        Self { sql, row: row.iter().map(KeptParam::from).collect(), amounts: amounts.to_vec() }
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
    pub(super) fn new(sql: &str, params: &[Param<'_>]) -> Self {
        Self { sql: sql.to_owned(), params: params.iter().map(KeptParam::from).collect() }
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

impl rusqlite::ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Param::Null => ValueRef::Null,
            Param::Integer(value) => ValueRef::Integer(*value),
            Param::Real(value) => ValueRef::Real(*value),
            Param::Text(value) => ValueRef::Text(value.as_bytes()),
            Param::Bytes(value) => ValueRef::Blob(value),
        }))
    }
}

impl ToSql for Param<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Param::Null => return Ok(IsNull::Yes),
            Param::Integer(value) if *ty == Type::INT8 => out.put_i64(*value),
            Param::Integer(value) if *ty == Type::INT4 => out.put_i32(i32::try_from(*value)?),
            Param::Real(value) if *ty == Type::FLOAT8 => out.put_f64(*value),
            Param::Text(value) if matches!(*ty, Type::TEXT | Type::VARCHAR | Type::NAME | Type::UNKNOWN) => {
                out.put_slice(value.as_bytes());
            }
            Param::Bytes(value) if *ty == Type::BYTEA => out.put_slice(value),
            other => return Err(format!("parameter {other:?} given where PostgreSQL expects {ty}").into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> From<&'a str> for Param<'a> {
    fn from(value: &'a str) -> Self {
        Param::Text(value)
    }
}
impl<'a> From<&'a String> for Param<'a> {
    fn from(value: &'a String) -> Self {
        Param::Text(value)
    }
}
impl<'a> From<&'a [u8]> for Param<'a> {
    fn from(value: &'a [u8]) -> Self {
        Param::Bytes(value)
    }
}
impl<'a> From<&'a Vec<u8>> for Param<'a> {
    fn from(value: &'a Vec<u8>) -> Self {
        Param::Bytes(value)
    }
}
impl From<i64> for Param<'_> {
    fn from(value: i64) -> Self {
        Param::Integer(value)
    }
}
impl From<bool> for Param<'_> {
    fn from(value: bool) -> Self {
        Param::Integer(i64::from(value))
    }
}
impl From<Timestamp> for Param<'_> {
    fn from(value: Timestamp) -> Self {
        Param::Integer(value.as_micros())
    }
}
impl<'a, K: Kind> From<&'a Id<K>> for Param<'a> {
    fn from(value: &'a Id<K>) -> Self {
        Param::Text(value.as_str())
    }
}
impl<'a, T: Into<Param<'a>>> From<Option<T>> for Param<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Param::Null, Into::into)
    }
}

/// One column of one row, borrowed from the engine.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'a> {
    /// SQL NULL.
    Null,
    /// A BIGINT.
    Integer(i64),
    /// A DOUBLE PRECISION.
    Real(f64),
    /// A TEXT.
    Text(&'a str),
    /// A BYTEA or BLOB.
    Bytes(&'a [u8]),
}

impl<'a> FromSql<'a> for Cell<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(match *ty {
            Type::INT8 => Cell::Integer(i64::from_sql(ty, raw)?),
            Type::INT4 => Cell::Integer(i64::from(i32::from_sql(ty, raw)?)),
            Type::BOOL => Cell::Integer(i64::from(bool::from_sql(ty, raw)?)),
            Type::FLOAT8 => Cell::Real(f64::from_sql(ty, raw)?),
            Type::BYTEA => Cell::Bytes(raw),
            _ => Cell::Text(std::str::from_utf8(raw)?),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Cell::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A row that is read column by column, in the order of the SELECT list.
pub struct Row<'r> {
    pub(crate) cells: Cells<'r>,
    pub(crate) next: usize,
}

pub(crate) enum Cells<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

impl Row<'_> {
    /// How many columns there are.
    pub(crate) fn width(&self) -> usize {
        match self.cells {
            Cells::Sqlite(row) => row.as_ref().column_count(),
            Cells::Postgres(row) => row.len(),
        }
    }

    /// The next column.
    #[expect(
        clippy::should_implement_trait,
        reason = "each column has a type of its own, so it is no iterator"
    )]
    pub fn next<T: FromCell>(&mut self) -> Result<T> {
        let index = self.next;
        self.next += 1;
        match self.cells {
            Cells::Sqlite(row) => T::from_cell(match row.get_ref(index)? {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(value) => Cell::Integer(value),
                ValueRef::Real(value) => Cell::Real(value),
                ValueRef::Text(value) => {
                    Cell::Text(std::str::from_utf8(value).map_err(|error| Error::Corrupt(error.into()))?)
                }
                ValueRef::Blob(value) => Cell::Bytes(value),
            }),
            Cells::Postgres(row) => T::from_cell(row.try_get(index)?),
        }
    }

    /// The next column, a TEXT that holds JSON.
    pub fn next_json<T: serde::de::DeserializeOwned>(&mut self) -> Result<T> {
        let text: String = self.next()?;
        serde_json::from_str(&text).map_err(|error| Error::not_json(&error))
    }

    /// The next column, a TEXT that names one value of an enum.
    pub fn next_named<T: std::str::FromStr<Err: std::fmt::Display>>(&mut self) -> Result<T> {
        let text: String = self.next()?;
        text.parse().map_err(|error: T::Err| Error::Corrupt(error.to_string().into()))
    }
}

/// What a column can be read as.
pub trait FromCell: Sized + Send {
    /// Reads one column.
    fn from_cell(cell: Cell<'_>) -> Result<Self>;
}

fn mismatch<T>(cell: Cell<'_>) -> Result<T> {
    // Not what it holds, which may be anybody's mail.
    let kind = match cell {
        Cell::Null => "nothing",
        Cell::Integer(_) => "an integer",
        Cell::Real(_) => "a real number",
        Cell::Text(_) => "a text",
        Cell::Bytes(_) => "bytes",
    };
    Err(Error::Corrupt(format!("column of another type: {kind}").into()))
}

impl FromCell for i64 {
    fn from_cell(cell: Cell<'_>) -> Result<Self> {
        if let Cell::Integer(value) = cell { Ok(value) } else { mismatch(cell) }
    }
}
impl FromCell for f64 {
    fn from_cell(cell: Cell<'_>) -> Result<Self> {
        if let Cell::Real(value) = cell { Ok(value) } else { mismatch(cell) }
    }
}
impl FromCell for bool {
    fn from_cell(cell: Cell<'_>) -> Result<Self> {
        i64::from_cell(cell).map(|value| value != 0)
    }
}
impl FromCell for String {
    fn from_cell(cell: Cell<'_>) -> Result<Self> {
        if let Cell::Text(value) = cell { Ok(value.to_owned()) } else { mismatch(cell) }
    }
}
impl FromCell for Vec<u8> {
    fn from_cell(cell: Cell<'_>) -> Result<Self> {
        if let Cell::Bytes(value) = cell { Ok(value.to_vec()) } else { mismatch(cell) }
    }
}
impl FromCell for Timestamp {
    fn from_cell(cell: Cell<'_>) -> Result<Self> {
        i64::from_cell(cell).map(Timestamp::from_micros)
    }
}
impl<K: Kind> FromCell for Id<K> {
    fn from_cell(cell: Cell<'_>) -> Result<Self> {
        String::from_cell(cell).map(Id::from)
    }
}
impl<T: FromCell> FromCell for Option<T> {
    fn from_cell(cell: Cell<'_>) -> Result<Self> {
        if let Cell::Null = cell { Ok(None) } else { T::from_cell(cell).map(Some) }
    }
}

/// What is done with each row of a query, without the type that it is read as.
pub(super) type ReadRow<'a> = &'a mut (dyn FnMut(&mut Row<'_>) -> Result<()> + Send);

/// What a whole row can be read as.
pub trait FromRow: Sized + Send {
    /// Reads one row.
    fn from_row(row: &mut Row<'_>) -> Result<Self>;
}

impl<A: FromCell> FromRow for (A,) {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok((row.next()?,))
    }
}
impl<A: FromCell, B: FromCell> FromRow for (A, B) {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok((row.next()?, row.next()?))
    }
}
impl<A: FromCell, B: FromCell, C: FromCell> FromRow for (A, B, C) {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok((row.next()?, row.next()?, row.next()?))
    }
}
impl<A: FromCell, B: FromCell, C: FromCell, D: FromCell> FromRow for (A, B, C, D) {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok((row.next()?, row.next()?, row.next()?, row.next()?))
    }
}
