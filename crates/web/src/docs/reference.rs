//! The OpenAPI document as the pages read it: tags with their operations, and each operation's inputs and
//! responses.
//!
//! Only lookups; presentation is elsewhere.

use serde_json::{Map, Value};

/// The document.
pub(super) struct Reference {
    document: Value,
}

/// A group of operations.
pub(super) struct Tag<'a> {
    pub(super) name: &'a str,
    pub(super) operations: Vec<Operation<'a>>,
}

/// Who may call an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    /// Public, without a credential.
    Anyone,
    /// A person logged in to the console.
    Session,
    /// An API key, or a logged-in person.
    Key,
}

/// One operation.
#[derive(Clone, Copy)]
pub(super) struct Operation<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    value: &'a Value,
}

/// A request or response body.
#[derive(Clone, Copy)]
pub(super) struct Content<'a> {
    /// The media type.
    pub(super) kind: &'a str,
    pub(super) schema: &'a Value,
    /// What the document shows as an example.
    pub(super) example: Option<&'a Value>,
}

/// One status of a response.
pub(super) struct Response<'a> {
    pub(super) status: &'a str,
    pub(super) description: &'a str,
    pub(super) content: Option<Content<'a>>,
    value: &'a Value,
}

impl Reference {
    pub(super) fn new(document: Value) -> Self {
        Self { document }
    }

    pub(super) fn document(&self) -> &Value {
        &self.document
    }

    pub(super) fn version(&self) -> &str {
        text(&self.document["info"], "version")
    }

    /// The schema that a `$ref` names.
    pub(super) fn schema(&self, reference: &str) -> Option<&Map<String, Value>> {
        self.document.pointer(reference.strip_prefix('#')?)?.as_object()
    }

    /// All operations, in the order of the document.
    pub(super) fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        let paths = self.document["paths"].as_object().into_iter().flatten();
        paths.flat_map(|(path, methods)| {
            let methods = methods.as_object().into_iter().flatten();
            methods.map(move |(method, value)| Operation { method, path, value })
        })
    }

    pub(super) fn operation(&self, id: &str) -> Option<Operation<'_>> {
        self.operations().find(|operation| operation.id() == id)
    }

    /// The tags with their operations. Those that an API key can use come first: most readers want them.
    pub(super) fn tags(&self) -> Vec<Tag<'_>> {
        let names = self.document["tags"].as_array().into_iter().flatten();
        let mut tags: Vec<Tag<'_>> = names
            .map(|tag| text(tag, "name"))
            .map(|name| Tag { name, operations: self.operations().filter(|one| one.tag() == name).collect() })
            .filter(|tag| !tag.operations.is_empty())
            .collect();
        tags.sort_by_key(|tag| !tag.operations.iter().any(|operation| operation.access() == Access::Key));
        tags
    }
}

impl<'a> Operation<'a> {
    pub(super) fn id(&self) -> &'a str {
        text(self.value, "operationId")
    }

    /// The id as words: `listApiKeys` is "List API keys".
    pub(super) fn title(&self) -> String {
        let mut words = String::new();
        for character in self.id().chars() {
            match character {
                upper if upper.is_uppercase() => words.extend([' ', upper.to_ascii_lowercase()]),
                first if words.is_empty() => words.push(first.to_ascii_uppercase()),
                other => words.push(other),
            }
        }
        words.split(' ').map(|word| if word == "api" { "API" } else { word }).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn summary(&self) -> &'a str {
        text(self.value, "summary")
    }

    fn tag(&self) -> &'a str {
        self.value["tags"][0].as_str().unwrap_or_default()
    }

    /// The price of a call; `None` for calls that are not metered.
    pub(super) fn credits(&self) -> Option<u64> {
        self.value["x-credits"].as_u64()
    }

    pub(super) fn class(&self) -> &'a str {
        text(self.value, "x-credit-class")
    }

    pub(super) fn plans(&self) -> Vec<&'a str> {
        self.value["x-plans"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub(super) fn role(&self) -> &'a str {
        text(self.value, "x-role")
    }

    /// The scopes of which a narrowed key needs one; `None` if no key is narrowed for it.
    pub(super) fn scopes(&self) -> Option<Vec<&'a str>> {
        match self.value.get("x-scope")? {
            Value::Array(scopes) => Some(scopes.iter().filter_map(Value::as_str).collect()),
            scope => Some(scope.as_str().into_iter().collect()),
        }
    }

    /// Whether it is refused to keys that are narrowed to mailboxes.
    pub(super) fn concerns_workspace(&self) -> bool {
        text(self.value, "x-reach") == "workspace"
    }

    pub(super) fn access(&self) -> Access {
        let Some(schemes) = self.value["security"].as_array() else { return Access::Key };
        let takes = |name: &str| schemes.iter().any(|scheme| scheme.get(name).is_some());
        match (takes("apiKey"), takes("session")) {
            (true, _) => Access::Key,
            (false, true) => Access::Session,
            (false, false) => Access::Anyone,
        }
    }

    pub(super) fn parameters(&self) -> &'a [Value] {
        self.value["parameters"].as_array().map_or(&[], Vec::as_slice)
    }

    pub(super) fn has_parameter(&self, name: &str) -> bool {
        self.parameters().iter().any(|parameter| parameter["name"] == name)
    }

    pub(super) fn body(&self) -> Option<Content<'a>> {
        content(&self.value["requestBody"])
    }

    pub(super) fn responses(&self) -> Vec<Response<'a>> {
        let responses = self.value["responses"].as_object().into_iter().flatten();
        responses
            .map(|(status, value)| Response {
                status,
                description: text(value, "description"),
                content: content(value),
                value,
            })
            .collect()
    }
}

impl<'a> Response<'a> {
    pub(super) fn is_error(&self) -> bool {
        self.status.starts_with(['4', '5'])
    }

    /// The codes with their messages; the description holds one pair in each paragraph.
    pub(super) fn codes(&self) -> Vec<(&'a str, &'a str)> {
        let pair = |line: &'a str| line.strip_prefix('`').and_then(|rest| rest.split_once("`: "));
        self.description.split("\n\n").map(|line| pair(line).unwrap_or(("", line))).collect()
    }

    /// The headers with their descriptions.
    pub(super) fn headers(&self) -> Vec<(&'a str, &'a str)> {
        let headers = self.value["headers"].as_object().into_iter().flatten();
        headers.map(|(name, header)| (name.as_str(), text(header, "description"))).collect()
    }
}

/// The body of a request or a response: JSON if there is a choice.
fn content(value: &Value) -> Option<Content<'_>> {
    let kinds = value["content"].as_object()?;
    let (kind, media) = kinds.get_key_value("application/json").or_else(|| kinds.iter().next())?;
    Some(Content { kind, schema: &media["schema"], example: media.get("example") })
}

/// A string property of an object, or an empty string.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
