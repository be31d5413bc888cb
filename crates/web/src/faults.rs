//! Validation faults of a request, in our own words and with the field names that the caller wrote.

use garde::Validate;
use operations::Detail;
use serde_json::Value;

/// Maximum faults reported: a request with more is wrong altogether.
pub(crate) const MAX_FAULTS: usize = 100;

pub(crate) const DUPLICATE: &str = "given more than once";
pub(crate) const REQUIRED: &str = "is required";
pub(crate) const UNKNOWN: &str = "unknown field";
/// The fault of a text with a NUL, which PostgreSQL cannot store.
pub(crate) const NUL: &str = "must not contain the character U+0000";

/// Turns a deserializer's error into a fault, with the name of its field.
pub(crate) fn fault(path: &str, message: &str) -> Detail {
    let named = |prefix: &str| message.strip_prefix(prefix).and_then(|rest| rest.split('`').next());
    let inside = |field: &str| match path {
        "" | "." => field.to_owned(),
        // The path of an unknown field already ends with it.
        path if path == field || path.ends_with(&format!(".{field}")) => path.to_owned(),
        path => format!("{path}.{field}"),
    };
    if let Some(field) = named("unknown field `") {
        return Detail::new(inside(field), UNKNOWN);
    }
    if let Some(field) = named("missing field `") {
        return Detail::new(inside(field), REQUIRED);
    }
    if let Some(field) = named("duplicate field `") {
        return Detail::new(inside(field), DUPLICATE);
    }
    // An error without a field belongs to the whole input.
    let path = path.trim_end_matches('?').trim_end_matches('.').to_owned();
    Detail::new(path, message)
}

/// Checks a value that could be read, and adds faults that are not listed yet.
pub(crate) fn check<T: Validate<Context = ()>>(
    value: &T,
    body: impl Fn() -> Option<Value>,
    details: &mut Vec<Detail>,
) {
    let Err(report) = value.validate() else { return };
    let (body, named) = (body(), details.len());
    for (path, error) in report.iter() {
        let path = as_written(&path.to_string(), body.as_ref());
        if !is_named(&details[..named], &path) {
            details.push(Detail { path, message: error.message().to_owned() });
        }
    }
}

/// Whether a path, or a parent of it, is among the faults.
pub(crate) fn is_named(details: &[Detail], path: &str) -> bool {
    details.iter().any(|detail| {
        let rest = path.strip_prefix(detail.path.as_str());
        rest.is_some_and(|rest| rest.is_empty() || (!detail.path.is_empty() && rest.starts_with(['.', '['])))
    })
}

/// Our fields are in snake case, some of the wire's in camel case: finds the spelling in the body.
fn as_written(path: &str, body: Option<&Value>) -> String {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let mut here = body;
    let mut written = Vec::new();
    for segment in path.split('.') {
        let (name, index) = segment.split_at(segment.find('[').unwrap_or(segment.len()));
        let object = here.and_then(Value::as_object);
        let found = object.and_then(|object| object.iter().find(|(key, _)| plain(key) == plain(name)));
        written.push(format!("{}{index}", found.map_or(name, |(key, _)| key)));
        here = found.and_then(|(_, value)| inside(value, index));
    }
    written.join(".")
}

/// The value at a path such as `[0][2]` in nested lists.
fn inside<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let mut here = value;
    for index in path.split(['[', ']']).filter(|index| !index.is_empty()) {
        here = here.get(index.parse::<usize>().ok()?)?;
    }
    Some(here)
}
