//! Reads a JSON body, and finds all faults of an invalid one.
//!
//! A deserializer stops at the first fault, and only a value that was read as a whole can be validated. Reporting
//! one fault at a time would cost the caller a call for each, so each fault is repaired in a copy of the body, with
//! a value that its schema allows, and the rest is read again.

use garde::Validate;
use operations::{Detail, Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use serde_path_to_error::{Path, Segment, Track};

use crate::{
    docs::StandIns,
    faults::{DUPLICATE, MAX_FAULTS, NUL, REQUIRED, UNKNOWN, check, fault, is_named},
};

/// Largest body that is read again, since every fault takes another pass; of larger bodies only the first fault is
/// reported.
const MAX_REREAD_BYTES: usize = 32 << 20;

/// Reads and checks a JSON body, which must be an object.
pub(crate) fn read_json<T: DeserializeOwned + Validate<Context = ()> + JsonSchema>(body: &[u8]) -> Result<T> {
    let details = match read(&mut serde_json::Deserializer::from_slice(body)) {
        Ok(value) => {
            let mut details = nul_faults(body);
            check(&value, || serde_json::from_slice(body).ok(), &mut details);
            if details.is_empty() {
                return Ok(value);
            }
            details
        }
        Err((_, first)) => all::<T>(body, first),
    };
    Err(Error::new(ErrorKind::ValidationFailed).with_details(details))
}

/// Reads an object, with the path of a fault.
fn read<T: DeserializeOwned>(
    json: &mut serde_json::Deserializer<serde_json::de::SliceRead<'_>>,
) -> Result<T, (Path, Detail)> {
    let mut track = Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut *json, &mut track);
    let value = model::object(tracked).map_err(|error| described(track.path(), &error))?;
    json.end().map_err(|error| described(Track::new().path(), &error))?;
    Ok(value)
}

fn reread<T: DeserializeOwned>(value: &Value) -> Result<T, (Path, Detail)> {
    let mut track = Track::new();
    let tracked = serde_path_to_error::Deserializer::new(value, &mut track);
    model::object(tracked).map_err(|error| described(track.path(), &error))
}

fn described(path: Path, error: &serde_json::Error) -> (Path, Detail) {
    let fault = fault(&path.to_string(), &error.to_string());
    (path, Detail { path: fault.path, message: fault.message })
}

/// All faults of a body that could not be read.
fn all<T: DeserializeOwned + Validate<Context = ()> + JsonSchema>(body: &[u8], first: Detail) -> Vec<Detail> {
    let mut attempts_left = MAX_REREAD_BYTES / body.len().max(1);
    let value = if attempts_left == 0 { None } else { serde_json::from_slice::<Value>(body).ok() };
    let Some(mut value) = value else { return vec![first] };
    let mut details = nul_faults(body);
    if first.message == DUPLICATE {
        // Of a repeated key only the last value is left in the copy.
        details.push(first);
    }
    let stand_ins = StandIns::of::<T>();
    let mut tried: Vec<String> = Vec::new();
    while details.len() < MAX_FAULTS && attempts_left > 0 {
        attempts_left -= 1;
        let (path, found) = match reread::<T>(&value) {
            Ok(read) => {
                check(&read, || Some(value.clone()), &mut details);
                break;
            }
            Err(fault) => fault,
        };
        let times = tried.iter().filter(|path| **path == found.path).count();
        tried.push(found.path.clone());
        let repaired = repair(&mut value, &path, &found, times, &stand_ins);
        if !is_named(&details, &found.path) {
            details.push(found);
        }
        if !repaired {
            break;
        }
    }
    details
}

/// Replaces a faulty value so that reading can go on: first with what the schema allows, then with other types.
/// False when nothing is left to try.
fn repair(value: &mut Value, path: &Path, found: &Detail, times: usize, stand_ins: &StandIns) -> bool {
    // A missing field has no path segment of its own.
    let missing = (found.message == REQUIRED).then(|| {
        let name = found.path.rsplit('.').next().unwrap_or_default();
        Segment::Map { key: name.to_owned() }
    });
    let mut segments: Vec<&Segment> = path.iter().chain(&missing).collect();
    // Inside an untagged union, paths have no names: the whole of it is faulty then.
    let has_name = |one: &&&Segment| matches!(one, Segment::Map { .. } | Segment::Seq { .. });
    let named = segments.iter().take_while(has_name).count();
    segments.truncate(named);
    let others = [json!(null), json!(""), json!(0), json!(false), json!([]), json!({})];
    let allowed = if times == 0 { stand_ins.at(&segments) } else { None };
    let stand_in = allowed.or_else(|| others.get(times.saturating_sub(1)).cloned());
    let Some((last, parents)) = segments.split_last() else { return false };
    let parent = parents.iter().try_fold(value, |here, segment| match segment {
        Segment::Map { key } => here.get_mut(key.as_str()),
        Segment::Seq { index } => here.get_mut(*index),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    match (parent, last, stand_in) {
        (Some(Value::Object(object)), Segment::Map { key }, Some(stand_in)) if found.message != UNKNOWN => {
            object.insert(key.clone(), stand_in);
            true
        }
        (Some(Value::Object(object)), Segment::Map { key }, _) => object.remove(key).is_some(),
        (Some(Value::Array(items)), Segment::Seq { index }, Some(stand_in)) => {
            items.get_mut(*index).map(|item| *item = stand_in).is_some()
        }
        _ => false,
    }
}

/// The strings of a body that contain a NUL, which JSON can only have as an escape.
fn nul_faults(body: &[u8]) -> Vec<Detail> {
    let mut escapes = body.split(|byte| *byte == b'\\').skip(1);
    if !escapes.any(|escape| escape.starts_with(b"u0000")) {
        return Vec::new();
    }
    let mut details = Vec::new();
    if let Ok(value) = serde_json::from_slice(body) {
        collect_nul(&value, String::new(), &mut details);
    }
    details
}

fn collect_nul(value: &Value, path: String, details: &mut Vec<Detail>) {
    match value {
        Value::String(text) if text.contains('\0') && details.len() < MAX_FAULTS => {
            details.push(Detail { path, message: NUL.to_owned() });
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_nul(item, format!("{path}[{index}]"), details);
            }
        }
        Value::Object(object) => {
            for (key, item) in object {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect_nul(item, path, details);
            }
        }
        _ => {}
    }
}
