//! The sources of values: each layer overrides those before it, and records where.
//!
//! This file only decides whether a key exists; `check.rs` decides whether its value is valid.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::{problem::Problem, suggest};

/// The defaults, and with them the list of all keys.
const DEFAULTS: &str = include_str!("../../../../config.default.toml");
/// The prefix of our environment variables.
const PREFIX: &str = "AGENT_MAILBOX__";
/// The file that is read when none is named.
const DEFAULT_FILE: &str = "agent-mailbox.toml";

/// The sources of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A file that must exist.
    pub file: Option<PathBuf>,
    /// The folder of relative paths, where the default file is searched.
    pub working_dir: PathBuf,
    /// The environment.
    pub environment: Vec<(String, String)>,
    /// The data folder, from the command line.
    pub data_dir: Option<PathBuf>,
}

impl Sources {
    /// The file to read: the named one, or the default one if it exists.
    fn file(&self) -> Option<PathBuf> {
        let default = || Some(self.working_dir.join(DEFAULT_FILE)).filter(|path| path.exists());
        self.file.clone().or_else(default)
    }
}

/// One option with its effective value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Its dotted name.
    pub(super) key: String,
    /// Its value, not type-checked yet.
    pub(super) value: Value,
    /// Its default, which also sets its type.
    pub(super) default: Value,
    /// Where the value was set; `None` for the default.
    pub(super) origin: Option<String>,
}

/// All options with their values, and the mistakes so far.
#[derive(Debug)]
pub(super) struct Layers {
    pub(super) entries: Vec<Entry>,
    pub(super) problems: Vec<Problem>,
}

impl Layers {
    pub(super) fn load(sources: &Sources) -> Self {
        let mut layers = Self::defaults();
        if let Some(path) = sources.file() {
            layers.add_file(&path);
        }
        for (name, text) in &sources.environment {
            if let Some(rest) = name.strip_prefix(PREFIX) {
                layers.add_variable(name, &rest.to_lowercase().replace("__", "."), text);
            }
        }
        if let Some(path) = &sources.data_dir {
            let value = Value::String(path.to_string_lossy().into_owned());
            layers.set("data_dir", value, "--data-dir");
        }
        layers
    }

    #[expect(clippy::expect_used, reason = "the text is part of the program, and every test reads it")]
    fn defaults() -> Self {
        let table: Table = DEFAULTS.parse().expect("the compiled-in defaults are TOML");
        let mut leaves = Vec::new();
        flatten("", table, &mut leaves);
        let entries = leaves
            .into_iter()
            .map(|(key, value)| Entry { key, default: value.clone(), value, origin: None })
            .collect();
        Self { entries, problems: Vec::new() }
    }

    fn add_file(&mut self, path: &Path) {
        let origin = path.display().to_string();
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return self.complain("", &origin, format!("cannot be read: {error}")),
        };
        let table: Table = match text.parse() {
            Ok(table) => table,
            // Only the position and the reason: the text around it may hold a secret.
            Err(error) => {
                let line = line_of(&text, &error);
                return self.complain("", &origin, format!("is not TOML: line {line}: {}", error.message()));
            }
        };
        let mut leaves = Vec::new();
        flatten("", table, &mut leaves);
        for (key, value) in leaves {
            // An empty section changes nothing.
            if !(value.is_table() && self.is_section(&key)) {
                self.set(&key, value, &origin);
            }
        }
    }

    fn is_section(&self, key: &str) -> bool {
        let section = format!("{key}.");
        self.entries.iter().any(|entry| entry.key.starts_with(&section))
    }

    fn add_variable(&mut self, name: &str, key: &str, text: &str) {
        let Some(entry) = self.entries.iter().find(|entry| entry.key == key) else {
            return self.unknown(key, name);
        };
        let value = from_text(entry, text);
        self.set(key, value, name);
    }

    fn set(&mut self, key: &str, value: Value, origin: &str) {
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => {
                entry.value = value;
                entry.origin = Some(origin.to_owned());
            }
            None => self.unknown(key, origin),
        }
    }

    fn unknown(&mut self, key: &str, origin: &str) {
        let message = if self.is_section(key) {
            "is a section, not an option".to_owned()
        } else {
            let known = self.entries.iter().map(|entry| entry.key.as_str());
            match suggest::nearest(key, known) {
                Some(nearest) if origin.starts_with(PREFIX) => {
                    let variable = format!("{PREFIX}{}", nearest.to_uppercase().replace('.', "__"));
                    format!("there is no such option; did you mean {nearest} ({variable})?")
                }
                Some(nearest) => format!("there is no such option; did you mean {nearest}?"),
                None => "there is no such option; `agent-mailbox config show` lists them all".to_owned(),
            }
        };
        self.complain(key, origin, message);
    }

    fn complain(&mut self, key: &str, origin: &str, message: String) {
        self.problems.push(Problem { key: key.to_owned(), origin: origin.to_owned(), message });
    }
}

/// The values of a table and of those in it, by their dotted keys.
fn flatten(prefix: &str, table: Table, leaves: &mut Vec<(String, Value)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match value {
            Value::Table(table) if !table.is_empty() => flatten(&key, table, leaves),
            value => leaves.push((key, value)),
        }
    }
}

fn line_of(text: &str, error: &toml::de::Error) -> usize {
    let start = error.span().map_or(0, |span| span.start);
    text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1
}

/// The value of a variable: in the option's type if the text parses as it, a string otherwise.
fn from_text(entry: &Entry, text: &str) -> Value {
    let typed = match &entry.default {
        Value::Array(_) => return Value::Array(list_from_text(text)),
        Value::Boolean(_) if takes_networks(&entry.key) => {
            let other = toml_value(text).filter(|value| value.is_bool() || value.is_integer());
            return other.unwrap_or_else(|| Value::Array(list_from_text(text)));
        }
        Value::String(_) if !is_limit(&entry.key) => None,
        Value::Boolean(_) => toml_value(text).filter(Value::is_bool),
        _ => toml_value(text).filter(Value::is_integer),
    };
    typed.unwrap_or_else(|| Value::String(text.to_owned()))
}

fn list_from_text(text: &str) -> Vec<Value> {
    if let Some(Value::Array(items)) = toml_value(text) {
        return items;
    }
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| Value::String(item.to_owned())).collect()
}

fn toml_value(text: &str) -> Option<Value> {
    let mut table: Table = format!("value = {}", text.trim()).parse().ok()?;
    if table.len() == 1 { table.remove("value") } else { None }
}

/// Whether an option is a number that may also be `"unlimited"`.
pub(super) fn is_limit(key: &str) -> bool {
    key.starts_with("send_policy.caps.") || (key.starts_with("plans.") && !key.ends_with(".price_cents"))
}

/// Whether an option is `true`, `false`, a number or a list.
fn takes_networks(key: &str) -> bool {
    key == "http.trust_proxy"
}
