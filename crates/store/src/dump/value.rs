//! One value of a row as JSON: NULL, numbers and text as themselves, bytes as `{"base64": …}`.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess},
    ser::SerializeMap,
};

use crate::{
    Cell, FromCell, FromRow, Param, Row,
    error::{Error, Result},
};

/// The one name in the object that stands for bytes.
const BASE64: &str = "base64";

/// A value of a dump.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row with all its columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record(pub(super) Vec<Value>);

impl Value {
    pub(super) fn as_param(&self) -> Param<'_> {
        match self {
            Self::Null => Param::Null,
            Self::Integer(number) => Param::Integer(*number),
            Self::Real(number) => Param::Real(*number),
            Self::Text(text) => Param::Text(text),
            Self::Bytes(bytes) => Param::Bytes(bytes),
        }
    }
}

impl FromCell for Value {
    fn from_cell(cell: Cell<'_>) -> Result<Self> {
        Ok(match cell {
            Cell::Null => Self::Null,
            Cell::Integer(number) => Self::Integer(number),
            Cell::Real(number) if number.is_finite() => Self::Real(number),
            Cell::Real(_) => return Err(Error::Corrupt("a number that is not finite".into())),
            Cell::Text(text) => Self::Text(text.to_owned()),
            Cell::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
        })
    }
}

impl FromRow for Record {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        (0..row.width()).map(|_| row.next()).collect::<Result<_>>().map(Self)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Real(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => {
                let mut object = serializer.serialize_map(Some(1))?;
                object.serialize_entry(BASE64, &STANDARD.encode(bytes))?;
                object.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl<'de> de::Visitor<'de> for Visitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, a number, a text or bytes in base64")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Value, E> {
        i64::try_from(number).map(Value::Integer).map_err(E::custom)
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Real(number))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }
    fn visit_string<E: de::Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let entry: Option<(String, String)> = map.next_entry()?;
        let encoded = entry.filter(|(name, _)| name == BASE64).map(|(_, encoded)| encoded);
        let encoded = encoded.ok_or_else(|| de::Error::custom("an object that is not bytes"))?;
        STANDARD.decode(encoded).map(Value::Bytes).map_err(de::Error::custom)
    }
}

pub(super) fn to_lines(records: &[Record]) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    for record in records {
        serde_json::to_writer(&mut lines, record).map_err(|error| Error::Internal(error.into()))?;
        lines.push(b'\n');
    }
    Ok(lines)
}

pub(super) fn from_lines(lines: &[u8], width: usize) -> Result<Vec<Record>> {
    let records = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    records
        .map(|line| match serde_json::from_slice::<Record>(line) {
            Ok(record) if record.0.len() == width => Ok(record),
            Ok(_) => Err(Error::Corrupt("a row with too few or too many values".into())),
            Err(error) => Err(Error::not_json(&error)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_survives() {
        let records = vec![
            Record(vec![Value::Null, Value::Integer(i64::MIN), Value::Real(1.0), Value::Bytes(vec![0, 255])]),
            Record(vec![
                Value::Text("\n\u{1f600}\"".into()),
                Value::Integer(i64::MAX),
                Value::Real(0.1),
                Value::Null,
            ]),
        ];
        let lines = to_lines(&records).unwrap();
        assert_eq!(lines.split_inclusive(|byte| *byte == b'\n').count(), 2);
        assert_eq!(from_lines(&lines, 4).unwrap(), records);
    }

    #[test]
    fn what_no_dump_holds_is_refused() {
        for line in [
            "[1]",
            "[1,2,3]",
            "{}",
            "[1,{\"hex\":\"00\"}]",
            "[1,{\"base64\":\"*\"}]",
            "[1,[]]",
            "[1,18446744073709551615]",
        ] {
            assert!(from_lines(line.as_bytes(), 2).is_err(), "{line}");
        }
    }
}
