//! Parameters and columns of SQL statements, the same for both engines.
//!
//! Five column types are used: TEXT, BIGINT (also times and booleans), DOUBLE PRECISION, BYTEA and JSON stored as
//! TEXT.

use std::{error::Error as StdError, fmt};

use bytes::{BufMut, BytesMut};
use model::{Id, Kind, Timestamp};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use serde::{Serialize, de::DeserializeOwned};
use tokio_postgres::types::{FromSql, IsNull, Kind as TypeKind, ToSql, Type, to_sql_checked};

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
    /// A TEXT with this value as JSON.
    Json(&'a dyn ToJson),
    /// An array of PostgreSQL.
    List(&'a [Param<'a>]),
}

/// A value that can be stored as JSON.
pub trait ToJson: fmt::Debug + Sync {
    /// The JSON text.
    fn to_json(&self) -> serde_json::Result<String>;
}

impl<T: Serialize + fmt::Debug + Sync> ToJson for T {
    fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
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
            Param::Json(value) => {
                let text = value.to_json();
                return text
                    .map(|text| ToSqlOutput::Owned(Value::Text(text)))
                    .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()));
            }
            Param::List(_) => {
                return Err(rusqlite::Error::ToSqlConversionFailure("SQLite has no arrays".into()));
            }
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
            Param::Bytes(value) if matches!(*ty, Type::BYTEA | Type::TS_VECTOR) => out.put_slice(value),
            Param::Json(value) if *ty == Type::TEXT => out.put_slice(value.to_json()?.as_bytes()),
            Param::List(values) if matches!(ty.kind(), TypeKind::Array(_)) => return values.to_sql(ty, out),
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

/// A value that can be a parameter.
pub(crate) trait ToParam {
    /// The parameter, borrowed.
    fn to_param(&self) -> Param<'_>;
}

impl ToParam for i64 {
    fn to_param(&self) -> Param<'_> {
        Param::Integer(*self)
    }
}
impl ToParam for bool {
    fn to_param(&self) -> Param<'_> {
        Param::from(*self)
    }
}
impl ToParam for Timestamp {
    fn to_param(&self) -> Param<'_> {
        Param::from(*self)
    }
}
impl ToParam for String {
    fn to_param(&self) -> Param<'_> {
        Param::Text(self)
    }
}
impl ToParam for Vec<u8> {
    fn to_param(&self) -> Param<'_> {
        Param::Bytes(self)
    }
}
impl<K: Kind> ToParam for Id<K> {
    fn to_param(&self) -> Param<'_> {
        Param::from(self)
    }
}
impl<T: ToParam> ToParam for Option<T> {
    fn to_param(&self) -> Param<'_> {
        self.as_ref().map_or(Param::Null, T::to_param)
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
    pub fn next_json<T: DeserializeOwned>(&mut self) -> Result<T> {
        let text: String = self.next()?;
        serde_json::from_str(&text).map_err(|error| Error::not_json(&error))
    }

    /// The next column, a TEXT that holds JSON, or NULL.
    pub fn next_optional_json<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let text: Option<String> = self.next()?;
        text.map(|text| serde_json::from_str(&text)).transpose().map_err(|error| Error::not_json(&error))
    }
}

/// A value that can be read from a column.
pub trait FromCell: Sized + Send {
    /// Reads one column.
    fn from_cell(cell: Cell<'_>) -> Result<Self>;
}

fn mismatch<T>(cell: Cell<'_>) -> Result<T> {
    // Not the value, which may be a user's mail.
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

/// Reads each row of a query, without its type.
pub(super) type ReadRow<'a> = &'a mut (dyn FnMut(&mut Row<'_>) -> Result<()> + Send);

/// The same, owned.
/// Reads rows into a list.
pub(super) fn read_into<T: FromRow>(list: &mut Vec<T>) -> impl FnMut(&mut Row<'_>) -> Result<()> + Send {
    |row| {
        list.push(T::from_row(row)?);
        Ok(())
    }
}

/// A value that can be read from a whole row.
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
