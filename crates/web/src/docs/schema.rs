//! JSON schemas as readable lists of fields.
//!
//! References are resolved, alternatives and nulls merged, bounds put into words.

use serde_json::{Map, Value};

use super::reference::{Reference, text};

/// Deeper than any of our bodies; stops recursive types.
const MAX_DEPTH: usize = 8;

/// A schema with its references resolved.
pub(super) struct Shape {
    /// The keywords; those next to a reference override those behind it.
    pub(super) schema: Map<String, Value>,
    /// Whether null is allowed too.
    pub(super) nullable: bool,
    /// The alternatives, if there is more than one.
    pub(super) alternatives: Vec<Shape>,
}

/// One field of an object.
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) required: bool,
    pub(super) description: String,
    /// Bounds in words, such as "1–80 characters".
    pub(super) bounds: Vec<String>,
    pub(super) pattern: Option<String>,
    pub(super) default: Option<String>,
    /// The allowed values with what they mean.
    pub(super) choices: Vec<(String, String)>,
    pub(super) inside: Vec<Field>,
}

impl Shape {
    /// Resolves a schema.
    pub(super) fn of(reference: &Reference, schema: &Value) -> Self {
        Self::at(reference, schema, 0)
    }

    fn at(reference: &Reference, schema: &Value, depth: usize) -> Self {
        let mut shape = Self {
            schema: schema.as_object().cloned().unwrap_or_default(),
            nullable: false,
            alternatives: Vec::new(),
        };
        if depth > MAX_DEPTH {
            return shape;
        }
        shape.follow(reference, depth);
        shape.drop_null_type();
        for keyword in ["anyOf", "oneOf"] {
            // A list of constants is an enumeration and stays unchanged.
            if is_enumeration(shape.schema.get(keyword)) {
                continue;
            }
            let Some(Value::Array(options)) = shape.schema.remove(keyword) else { continue };
            let (nulls, real): (Vec<_>, Vec<_>) = options.iter().partition(|one| one["type"] == "null");
            shape.nullable |= !nulls.is_empty();
            let mut found: Vec<Self> = real.iter().map(|one| Self::at(reference, one, depth + 1)).collect();
            if found.len() == 1 {
                let only = found.remove(0);
                shape.nullable |= only.nullable;
                merge(&mut shape.schema, only.schema);
                found = only.alternatives;
            }
            shape.alternatives.extend(found);
        }
        shape
    }

    /// Merges what `$ref` and `allOf` point to.
    fn follow(&mut self, reference: &Reference, depth: usize) {
        let mut parts = Vec::new();
        if let Some(Value::String(target)) = self.schema.remove("$ref") {
            parts.extend(reference.schema(&target).cloned().map(Value::Object));
        }
        if let Some(Value::Array(all)) = self.schema.remove("allOf") {
            parts.extend(all);
        }
        for part in parts {
            let shape = Self::at(reference, &part, depth + 1);
            self.nullable |= shape.nullable;
            self.alternatives.extend(shape.alternatives);
            merge(&mut self.schema, shape.schema);
        }
    }

    /// Removes null from `"type": ["string", "null"]`.
    fn drop_null_type(&mut self) {
        let Some(Value::Array(types)) = self.schema.get("type") else { return };
        let mut real: Vec<Value> = types.iter().filter(|one| *one != "null").cloned().collect();
        self.nullable |= real.len() < types.len();
        let kind = if real.len() == 1 { real.remove(0) } else { Value::Array(real) };
        self.schema.insert("type".to_owned(), kind);
    }

    pub(super) fn get(&self, keyword: &str) -> Option<&Value> {
        self.schema.get(keyword)
    }

    /// The schema of the items, if it is a list.
    pub(super) fn items(&self) -> Option<&Value> {
        self.get("items").filter(|items| items.is_object())
    }

    /// The properties with whether each is required.
    pub(super) fn properties(&self) -> impl Iterator<Item = (&String, &Value, bool)> {
        let required = self.get("required").and_then(Value::as_array);
        let is_required = move |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
        let properties = self.get("properties").and_then(Value::as_object).into_iter().flatten();
        properties.map(move |(name, schema)| (name, schema, is_required(name)))
    }

    /// The allowed values with their descriptions.
    pub(super) fn choices(&self) -> Vec<(String, String)> {
        let mut choices = values_of(&Value::Object(self.schema.clone()));
        for options in ["oneOf", "anyOf"].into_iter().filter_map(|keyword| self.get(keyword)) {
            choices.extend(options.as_array().into_iter().flatten().flat_map(values_of));
        }
        choices
    }

    /// The type in words.
    pub(super) fn kind(&self, reference: &Reference) -> String {
        let kind = if self.alternatives.is_empty() {
            self.own_kind(reference)
        } else {
            let kinds: Vec<String> = self.alternatives.iter().map(|one| one.kind(reference)).collect();
            kinds.join(" or ")
        };
        if self.nullable { format!("{kind} or null") } else { kind }
    }

    fn own_kind(&self, reference: &Reference) -> String {
        if let Some(items) = self.items() {
            return format!("list of {}", plural(&Self::of(reference, items).kind(reference)));
        }
        let format = self.get("format").and_then(Value::as_str).unwrap_or_default();
        let kind = match self.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            Some(Value::Array(kinds)) => {
                kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
            }
            _ if !self.choices().is_empty() => "string".to_owned(),
            _ => "any value".to_owned(),
        };
        match (kind.as_str(), format) {
            ("string", "date-time") => "timestamp".to_owned(),
            ("string", "date") => "date".to_owned(),
            ("string", "email") => "email address".to_owned(),
            ("string", "uuid") => "UUID".to_owned(),
            ("string", "uri") => "URL".to_owned(),
            ("boolean", _) => "true or false".to_owned(),
            ("array", _) => "list".to_owned(),
            _ => kind,
        }
    }
}

/// The fields of a body: of the object, of a list's items, or of all alternatives.
pub(super) fn fields(reference: &Reference, schema: &Value) -> Vec<Field> {
    fields_of(reference, &Shape::of(reference, schema), 0)
}

fn fields_of(reference: &Reference, shape: &Shape, depth: usize) -> Vec<Field> {
    if depth > MAX_DEPTH {
        return Vec::new();
    }
    if let Some(items) = shape.items() {
        return fields_of(reference, &Shape::of(reference, items), depth + 1);
    }
    let mut found: Vec<Field> = shape
        .properties()
        .map(|(name, schema, required)| field(reference, name, schema, required, depth + 1))
        .collect();
    for alternative in &shape.alternatives {
        for field in fields_of(reference, alternative, depth + 1) {
            if found.iter().all(|present| present.name != field.name) {
                found.push(field);
            }
        }
    }
    found
}

/// One named value: a field of an object, or a parameter.
pub(super) fn field(
    reference: &Reference,
    name: &str,
    schema: &Value,
    required: bool,
    depth: usize,
) -> Field {
    let shape = Shape::of(reference, schema);
    let items = shape.items().map(|items| Shape::of(reference, items));
    let mut choices = shape.choices();
    choices.extend(items.as_ref().map(Shape::choices).unwrap_or_default());
    let word = |keyword: &str| shape.get(keyword).and_then(Value::as_str).map(ToOwned::to_owned);
    Field {
        name: name.to_owned(),
        kind: shape.kind(reference),
        required,
        description: word("description").unwrap_or_default(),
        bounds: bounds(&shape),
        pattern: word("pattern"),
        // A null default means "left out", and an object's defaults are shown with its own fields.
        default: shape
            .get("default")
            .filter(|value| !value.is_null() && !value.is_object())
            .map(display_value),
        choices,
        inside: fields_of(reference, &shape, depth),
    }
}

fn bounds(shape: &Shape) -> Vec<String> {
    let number = |keyword: &str| shape.get(keyword).filter(|value| value.is_number()).map(grouped);
    let range = |min: Option<String>, max: Option<String>, unit: &str| match (min, max) {
        (Some(min), Some(max)) if min == max => Some(format!("exactly {max}{unit}")),
        (Some(min), Some(max)) => Some(format!("{min}–{max}{unit}")),
        (Some(min), None) => Some(format!("at least {min}{unit}")),
        (None, Some(max)) => Some(format!("at most {max}{unit}")),
        (None, None) => None,
    };
    let all = [
        range(number("minLength"), number("maxLength"), " characters"),
        range(number("minItems"), number("maxItems"), " items"),
        range(number("minimum"), number("maximum"), ""),
    ];
    all.into_iter().flatten().collect()
}

/// A number with thousands separators.
fn grouped(value: &Value) -> String {
    let Some(number) = value.as_u64() else { return value.to_string() };
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A value as JSON, but plain strings without quotes.
fn display_value(value: &Value) -> String {
    match value {
        Value::String(words) if !words.is_empty() => words.clone(),
        other => other.to_string(),
    }
}

fn plural(kind: &str) -> String {
    match kind {
        "true or false" | "any value" | "list" => format!("{kind} values"),
        "email address" => "email addresses".to_owned(),
        _ => format!("{kind}s"),
    }
}

/// The values that `const` and `enum` allow, each with its description.
fn values_of(schema: &Value) -> Vec<(String, String)> {
    let Some(values) =
        schema.get("const").map(|one| vec![one.clone()]).or_else(|| schema.get("enum")?.as_array().cloned())
    else {
        return Vec::new();
    };
    // The description of a whole enumeration says nothing about a single value.
    let meaning = if schema.get("const").is_some() { text(schema, "description") } else { "" };
    values.iter().map(|value| (display_value(value), meaning.to_owned())).collect()
}

fn is_enumeration(options: Option<&Value>) -> bool {
    let is_value = |one: &Value| one.get("const").is_some() || one.get("enum").is_some();
    options.and_then(Value::as_array).is_some_and(|all| !all.is_empty() && all.iter().all(is_value))
}

/// Adds missing keys.
fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(present)), Value::Object(more)) if key == "properties" => {
                merge(present, more);
            }
            (Some(Value::Array(present)), Value::Array(more)) if key == "required" => present.extend(more),
            (Some(_), _) => {}
            (None, value) => {
                into.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn only(schema: &Value) -> Field {
        let document = json!({ "components": { "schemas": {
            "Person": { "type": "object", "description": "A person.", "required": ["email"], "properties": {
                "email": { "type": "string", "format": "email" },
            } },
        } } });
        field(&Reference::new(document), "one", schema, false, 0)
    }

    #[test]
    fn bounds_are_words() {
        let bounds = |schema: Value| only(&schema).bounds.join(", ");
        assert_eq!(bounds(json!({ "minLength": 1, "maxLength": 10000 })), "1–10,000 characters");
        assert_eq!(bounds(json!({ "maxItems": 20 })), "at most 20 items");
        assert_eq!(bounds(json!({ "minimum": 1 })), "at least 1");
        assert_eq!(bounds(json!({ "minLength": 6, "maxLength": 6 })), "exactly 6 characters");
    }

    #[test]
    fn types_are_words() {
        let kind = |schema: Value| only(&schema).kind;
        let person = json!({ "$ref": "#/components/schemas/Person" });
        assert_eq!(kind(json!({ "type": ["string", "null"], "format": "date-time" })), "timestamp or null");
        assert_eq!(kind(json!({ "anyOf": [person, { "type": "null" }] })), "object or null");
        assert_eq!(kind(json!({ "type": "array", "items": person })), "list of objects");
        let several =
            json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] });
        assert_eq!(kind(several), "string or list of strings");
    }

    #[test]
    fn references_bring_their_fields_and_keep_their_own_words() {
        let one = only(&json!({ "$ref": "#/components/schemas/Person", "description": "The sender." }));
        assert_eq!(one.description, "The sender.");
        assert_eq!((one.inside[0].name.as_str(), one.inside[0].required), ("email", true));
        let either =
            only(&json!({ "anyOf": [{ "type": "string" }, { "$ref": "#/components/schemas/Person" }] }));
        assert_eq!((either.kind.as_str(), either.inside.len()), ("string or object", 1));
    }

    #[test]
    fn choices_are_found_in_both_spellings() {
        let schema = json!({ "oneOf": [{ "enum": ["a"] }, { "const": "b", "description": "The other." }] });
        let expected = [("a".to_owned(), String::new()), ("b".to_owned(), "The other.".to_owned())];
        assert_eq!(only(&schema).choices, expected);
    }
}
