//! JSON values as literals of a language, with variables in the place of strings such as `$EMAIL_ID`.

use serde_json::Value;

use super::call::variable_of;

/// How a language writes values.
pub(super) struct Style {
    /// Its words for true, false and null.
    pub(super) words: [&'static str; 3],
    /// Spaces of one level.
    pub(super) indent: usize,
    /// Whether a comma follows the last member too.
    pub(super) trailing_comma: bool,
    /// Whether keys that are names are written without quotes.
    pub(super) bare_keys: bool,
    /// A variable.
    pub(super) variable: fn(&str) -> String,
    /// A string, given as JSON.
    pub(super) string: fn(String) -> String,
}

impl Style {
    /// A value whose first line is already indented by `depth` levels.
    pub(super) fn write(&self, value: &Value, depth: usize) -> String {
        match value {
            Value::Null => self.words[2].to_owned(),
            Value::Bool(given) => self.words[usize::from(!given)].to_owned(),
            Value::Number(number) => number.to_string(),
            Value::String(text) => match variable_of(text) {
                Some(name) => (self.variable)(name),
                None => (self.string)(value.to_string()),
            },
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.write(item, depth)).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Object(members) if members.is_empty() => "{}".to_owned(),
            Value::Object(members) => {
                let pad = " ".repeat(self.indent * (depth + 1));
                let lines: Vec<String> = members
                    .iter()
                    .map(|(key, inner)| format!("{pad}{}: {}", self.key(key), self.write(inner, depth + 1)))
                    .collect();
                let end = if self.trailing_comma { "," } else { "" };
                format!("{{\n{}{end}\n{}}}", lines.join(",\n"), " ".repeat(self.indent * depth))
            }
        }
    }

    fn key(&self, key: &str) -> String {
        let is_name = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !key.starts_with(|first: char| first.is_ascii_digit());
        if self.bare_keys && is_name { key.to_owned() } else { (self.string)(Value::from(key).to_string()) }
    }
}
