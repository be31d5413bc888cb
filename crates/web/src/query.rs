//! Query strings and path parameters into typed values, with our own errors.

use std::borrow::Cow;

use garde::Validate;
use operations::Detail;
use schemars::JsonSchema;
use serde::{
    Deserialize,
    de::{self, DeserializeOwned, IntoDeserializer, value::MapDeserializer},
    forward_to_deserialize_any,
};
use serde_path_to_error::Segment;

use crate::{
    docs::StandIns,
    faults::{MAX_FAULTS, NUL, REQUIRED, check, fault},
};

/// Reads and checks a query string. Unknown and repeated parameters are refused, and all faults are reported.
pub(crate) fn from_query<T>(query: &str) -> Result<T, Vec<Detail>>
where
    T: DeserializeOwned + Validate<Context = ()> + JsonSchema,
{
    let mut pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let mut faults: Vec<Detail> = Vec::new();
    loop {
        let nul = pairs.iter().find(|(_, value)| value.contains('\0'));
        let read: Result<T, Detail> = match nul {
            Some((name, _)) => Err(Detail::new(name.as_ref(), NUL)),
            None => from_pairs(pairs.iter().map(|(name, value)| (name.clone(), Value(value.clone())))),
        };
        let fault = match read {
            Ok(value) => {
                check(&value, || None, &mut faults);
                return if faults.is_empty() { Ok(value) } else { Err(faults) };
            }
            Err(fault) => fault,
        };
        let before = pairs.len();
        pairs.retain(|(name, _)| *name != fault.path);
        // Fill in what is missing or was removed as faulty, so that the rest can be read.
        if pairs.len() == before
            && let Some(stand_in) = stand_in::<T>(&fault)
        {
            pairs.push((fault.path.clone().into(), stand_in.into()));
        }
        let stuck = pairs.len() == before;
        if !faults.iter().any(|earlier| earlier.path == fault.path) {
            faults.push(fault);
        }
        if stuck || faults.len() >= MAX_FAULTS {
            return Err(faults);
        }
    }
}

/// A value for a parameter that is missing.
fn stand_in<T: JsonSchema>(fault: &Detail) -> Option<String> {
    if fault.message != REQUIRED {
        return None;
    }
    let segment = Segment::Map { key: fault.path.clone() };
    match StandIns::of::<T>().at(&[&segment])? {
        serde_json::Value::String(text) => Some(text),
        value @ (serde_json::Value::Bool(_) | serde_json::Value::Number(_)) => Some(value.to_string()),
        _ => None,
    }
}

/// Reads named values.
pub(crate) fn from_pairs<'a, T: DeserializeOwned>(
    pairs: impl Iterator<Item = (Cow<'a, str>, Value<'a>)>,
) -> Result<T, Detail> {
    let deserializer = MapDeserializer::<_, de::value::Error>::new(pairs);
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let path = error.path().to_string();
        let message = error.into_inner().to_string();
        fault(&path, &message)
    })
}

/// One value: text that is parsed as the field's type.
pub(crate) struct Value<'a>(pub(crate) Cow<'a, str>);

impl IntoDeserializer<'_, de::value::Error> for Value<'_> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident $visit:ident $what:literal;)*) => { $(
        fn $method<V: de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            let value = self.0.parse().map_err(|_| de::Error::custom(concat!("expected ", $what)))?;
            visitor.$visit(value)
        }
    )* };
}

impl<'de> de::Deserializer<'de> for Value<'_> {
    type Error = de::value::Error;

    fn deserialize_any<V: de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0 {
            Cow::Borrowed(text) => visitor.visit_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_option<V: de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: de::Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: de::Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    fn deserialize_bool<V: de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match &*self.0 {
            "true" | "1" => visitor.visit_bool(true),
            "false" | "0" => visitor.visit_bool(false),
            _ => Err(de::Error::custom("expected true, false, 1 or 0")),
        }
    }

    parsed! {
        deserialize_i64 visit_i64 "a whole number";
        deserialize_u64 visit_u64 "a whole number that is not negative";
        deserialize_u32 visit_u32 "a whole number that is not negative";
        deserialize_f64 visit_f64 "a number";
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u128 f32 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map
        struct identifier ignored_any
    }
}

/// No query parameters at all.
#[derive(Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub(crate) struct Nothing {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, Validate, JsonSchema, Debug)]
    #[serde(deny_unknown_fields)]
    #[garde(allow_unvalidated)]
    struct Sample {
        #[garde(range(max = 90))]
        days: i64,
        #[serde(default)]
        read: Option<bool>,
        #[garde(length(max = 3))]
        #[serde(default)]
        name: Option<String>,
    }

    fn parse(query: &str) -> Result<Sample, (String, String)> {
        from_query(query).map_err(|mut faults| {
            let first = faults.remove(0);
            (first.path, first.message)
        })
    }

    #[test]
    fn reads_typed_values() {
        let sample = parse("days=7&read=1").unwrap();
        assert_eq!((sample.days, sample.read), (7, Some(true)));
        assert_eq!(parse("days=1").unwrap().read, None);
    }

    #[test]
    fn names_what_is_wrong() {
        assert_eq!(parse("days=x").unwrap_err(), ("days".into(), "expected a whole number".into()));
        assert_eq!(parse("days=1&read=yes").unwrap_err().0, "read");
        assert_eq!(parse("days=1&color=red").unwrap_err(), ("color".into(), "unknown field".into()));
        assert_eq!(parse("days=1&days=2").unwrap_err(), ("days".into(), "given more than once".into()));
        assert_eq!(parse("").unwrap_err(), ("days".into(), "is required".into()));
        let faults = from_query::<Sample>("color=red&days=x&read=%00&size=9").unwrap_err();
        let paths: Vec<&str> = faults.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(paths, ["read", "color", "days", "size"]);
    }

    /// rules: ERR-3
    #[test]
    fn wrong_types_hide_no_wrong_values() {
        let paths = |query: &str| {
            let faults = from_query::<Sample>(query).unwrap_err();
            faults.into_iter().map(|fault| fault.path).collect::<Vec<_>>()
        };
        assert_eq!(paths("days=91&read=maybe&name=long"), ["read", "days", "name"]);
        assert_eq!(paths("days=x&name=long"), ["days", "name"]);
        assert_eq!(paths("name=long&read=2&days=7"), ["read", "name"]);
        assert_eq!(paths("name=long&color=red"), ["color", "days", "name"]);
    }
}
