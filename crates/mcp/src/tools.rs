//! The tools: one for each operation of the API, generated from the same declarations and the same document.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    sync::LazyLock,
};

use http::Method;
use model::{Plan, Role};
use operations::Operation;
use rmcp::model::{JsonObject, Tool as Declaration, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::{schema, texts};

/// The argument for the idempotency key of a write.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotencyKey";
/// The argument for the confirmation of a destructive tool.
pub(crate) const CONFIRMATION: &str = "confirmationToken";
/// The argument for the header `Prefer: respond-async`.
pub(crate) const RESPOND_ASYNC: &str = "respond_async";
/// The argument for the bytes of a body that is not JSON, in base64.
pub(crate) const CONTENT: &str = "content";
/// The argument for the media type of such a body.
pub(crate) const CONTENT_TYPE: &str = "content_type";
/// The argument that lets `read_thread` mark a thread as read; without it the tool only reads.
pub(crate) const MARK_READ: &str = "mark_read";
/// The operation that marks a thread as read, and the one that shows it.
pub(crate) const READ_THREAD: &str = "readThread";
pub(crate) const GET_THREAD: &str = "getThread";

/// What reads and writes cost at most; a description tells only of more.
const USUAL_CREDITS: u64 = 2;

/// Where an argument of a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentLocation {
    Path,
    Query,
    Body,
}

/// The body of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    None,
    Json,
    /// Bytes of one of several media types.
    Bytes,
}

/// One tool.
#[derive(Clone)]
pub(crate) struct Tool {
    pub(crate) declaration: Declaration,
    pub(crate) operation: &'static Operation,
    pub(crate) method: Method,
    /// The path, with parameters in braces.
    pub(crate) path: String,
    pub(crate) locations: BTreeMap<String, ArgumentLocation>,
    pub(crate) body: Body,
    pub(crate) destructive: bool,
}

impl Tool {
    pub(crate) fn name(&self) -> &str {
        &self.declaration.name
    }

    /// Whether a call may wait before it returns.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.operation.id, "waitForEmail" | "listEvents")
    }

    /// The declared arguments.
    pub(crate) fn arguments(&self) -> Option<&Map<String, Value>> {
        self.declaration.input_schema.get("properties").and_then(Value::as_object)
    }

    /// The names of the declared arguments.
    pub(crate) fn declared_names(&self) -> Vec<&str> {
        self.arguments().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }

    /// The names of all arguments that are taken, also of those that a profile does not declare.
    pub(crate) fn argument_names(&self) -> Vec<&str> {
        self.declared_names().into_iter().chain(self.locations.keys().map(String::as_str)).collect()
    }

    /// The names of the required arguments.
    pub(crate) fn required(&self) -> Vec<&str> {
        let required = self.declaration.input_schema.get("required").and_then(Value::as_array);
        required.into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// All tools, in the order of the API's documentation.
pub(crate) fn all() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| make(&web::document()));
    &TOOLS
}

/// The tool of an operation.
pub(crate) fn of_operation(id: &str) -> Option<&'static Tool> {
    all().iter().find(|tool| tool.operation.id == id)
}

/// Operations with an endless response are not tools; those of the console's session cannot be called with a key.
fn make(document: &Value) -> Vec<Tool> {
    let operations: HashMap<&str, &'static Operation> =
        operations::catalog().into_iter().map(|operation| (operation.id, operation)).collect();
    let definitions = &document["components"]["schemas"];
    let mut tools = Vec::new();
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, described) in methods.as_object().into_iter().flatten() {
            let id = described["operationId"].as_str().unwrap_or_default();
            let Some(operation) = operations.get(id).filter(|operation| !operation.console_only) else {
                continue;
            };
            let Ok(method) = method.to_ascii_uppercase().parse() else { continue };
            if !is_stream(described) {
                tools.push(tool(operation, method, path, described, definitions));
            }
        }
    }
    tools
}

/// Whether the response can only be a stream.
fn is_stream(described: &Value) -> bool {
    let responses = described["responses"].as_object().into_iter().flatten();
    responses.into_iter().any(|(_, response)| {
        let content = &response["content"];
        !content["text/event-stream"].is_null() && content["application/json"].is_null()
    })
}

fn tool(
    operation: &'static Operation,
    method: Method,
    path: &str,
    described: &Value,
    definitions: &Value,
) -> Tool {
    let destructive = method == Method::DELETE || operation.destructive;
    let mut arguments = Arguments::default();
    for parameter in described["parameters"].as_array().into_iter().flatten() {
        arguments.add_parameter(parameter, definitions);
    }
    let body = arguments.add_body(&described["requestBody"]["content"], definitions);
    arguments.add_own(operation, destructive);
    let name = name(operation.id);
    let schema = JsonObject::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), Value::Object(arguments.properties)),
        ("required".to_owned(), json!(arguments.required)),
        ("additionalProperties".to_owned(), json!(false)),
    ]);
    let declaration = Declaration::new(name, description(operation, destructive), schema)
        .with_annotations(annotations(operation, &method, destructive));
    Tool {
        declaration,
        operation,
        method,
        path: path.to_owned(),
        locations: arguments.locations,
        body,
        destructive,
    }
}

/// The arguments of a tool, as they are collected.
#[derive(Default)]
struct Arguments {
    properties: Map<String, Value>,
    required: Vec<String>,
    locations: BTreeMap<String, ArgumentLocation>,
}

impl Arguments {
    fn add_parameter(&mut self, parameter: &Value, definitions: &Value) {
        let name = parameter["name"].as_str().unwrap_or_default();
        let location = match parameter["in"].as_str() {
            Some("path") => ArgumentLocation::Path,
            Some("query") => ArgumentLocation::Query,
            Some("header") if name == "Prefer" => {
                let text = "Answer at once, without waiting for other servers.";
                let property = json!({ "type": "boolean", "description": text });
                self.properties.insert(RESPOND_ASYNC.to_owned(), property);
                return;
            }
            _ => return,
        };
        let mut property = schema::inline(&parameter["schema"], definitions);
        if let Some(description) = parameter["description"].as_str() {
            property["description"] = description.into();
        }
        let property = described(name, schema::shorten(property));
        // A key belongs to one workspace, so its id is optional.
        let own_workspace = name == "workspaceId";
        if parameter["required"] == true && !own_workspace {
            self.required.push(name.to_owned());
        }
        self.locations.insert(name.to_owned(), location);
        self.properties.insert(name.to_owned(), property);
    }

    fn add_body(&mut self, content: &Value, definitions: &Value) -> Body {
        let Some(types) = content.as_object() else { return Body::None };
        let Some(body) = types.get("application/json") else {
            let bytes = json!({ "type": "string", "description": "The bytes, in base64." });
            let kinds: Vec<&String> = types.keys().collect();
            let kind = json!({ "type": "string", "enum": kinds });
            self.properties.insert(CONTENT.to_owned(), bytes);
            self.properties.insert(CONTENT_TYPE.to_owned(), kind);
            self.required.extend([CONTENT.to_owned(), CONTENT_TYPE.to_owned()]);
            return Body::Bytes;
        };
        let schema = schema::inline(&body["schema"], definitions);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            self.locations.insert(name.clone(), ArgumentLocation::Body);
            self.properties.insert(name.clone(), described(name, schema::shorten(property.clone())));
        }
        let required = schema["required"].as_array().into_iter().flatten();
        self.required.extend(required.filter_map(Value::as_str).map(ToOwned::to_owned));
        Body::Json
    }

    /// Arguments besides the operation's own input.
    fn add_own(&mut self, operation: &Operation, destructive: bool) {
        if operation.writes {
            self.properties.insert(IDEMPOTENCY_KEY.to_owned(), json!({ "type": "string" }));
        }
        if destructive {
            let text = "From the first call's answer.";
            self.properties.insert(CONFIRMATION.to_owned(), json!({ "type": "string", "description": text }));
        }
        if operation.id == READ_THREAD {
            self.properties.insert(MARK_READ.to_owned(), json!({ "type": "boolean", "default": false }));
        }
    }
}

/// A property with the description that all tools share, if there is one.
fn described(name: &str, mut property: Value) -> Value {
    let Some(object) = property.as_object_mut() else { return property };
    match texts::argument(name) {
        Some("") => {
            object.remove("description");
        }
        Some(text) => {
            object.insert("description".to_owned(), text.into());
        }
        None => {}
    }
    if name == "attachments" {
        strip_field_texts(&mut property);
    }
    property
}

/// Removes what is said of the fields of a list's objects: the text of the list says enough, and five tools have it.
fn strip_field_texts(list: &mut Value) {
    let fields = list["items"]["properties"].as_object_mut().into_iter().flatten();
    for (_, field) in fields {
        if let Some(field) = field.as_object_mut() {
            field.remove("description");
        }
    }
}

fn description(operation: &Operation, destructive: bool) -> String {
    let summary = || schema::first_sentence(operation.summary).to_owned();
    let mut text = texts::description(operation.id).map_or_else(summary, ToOwned::to_owned);
    let credits = operation.class.credits();
    if credits > USUAL_CREDITS {
        let _ = write!(text, " {credits} credits.");
    }
    if operation.plan > Plan::Free {
        let _ = write!(text, " Needs the {} plan.", operation.plan.display_name());
    }
    if operation.role > Role::Member {
        text.push_str(" Admin keys only.");
    }
    if destructive {
        text.push_str(" Needs confirmation.");
    }
    text
}

/// Hints only where they say more than the protocol's defaults; of a tool that only reads the others mean nothing.
fn annotations(operation: &Operation, method: &Method, destructive: bool) -> ToolAnnotations {
    let hints = ToolAnnotations::new().read_only(!operation.writes);
    if !operation.writes {
        return hints;
    }
    let hints = hints.destructive(destructive);
    if *method == Method::PUT || *method == Method::DELETE { hints.idempotent(true) } else { hints }
}

/// The name of an operation's tool.
pub(crate) fn name(id: &str) -> String {
    if id == "getEmailVerification" {
        return "get_verification".to_owned();
    }
    let mut name = String::with_capacity(id.len() + 4);
    for character in id.chars() {
        if character.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(character.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_that_a_key_can_call_is_a_tool() {
        let names: Vec<&str> = all().iter().map(|tool| tool.operation.id).collect();
        for operation in operations::catalog() {
            let expected = !operation.console_only && operation.id != "streamEvents";
            assert_eq!(names.contains(&operation.id), expected, "{}", operation.id);
        }
        for name in ["list_emails", "get_email_context", "send_email", "wait_for_email", "get_verification"] {
            assert!(all().iter().any(|tool| tool.name() == name), "{name}");
        }
    }

    /// Arguments are in one object, so their names must differ, and none may refer to a document.
    #[test]
    fn schemas_stand_alone() {
        let document = web::document();
        for tool in all() {
            let schema = serde_json::to_string(&tool.declaration.input_schema).unwrap();
            assert!(!schema.contains("$ref"), "{}", tool.name());
            let described = &document["paths"][&tool.path][tool.method.as_str().to_ascii_lowercase()];
            let inputs = ["path", "query"].map(|place| {
                let all = described["parameters"].as_array().into_iter().flatten();
                all.filter(|one| one["in"] == place).count()
            });
            let body = &described["requestBody"]["content"]["application/json"]["schema"];
            let body = schema::inline(body, &document["components"]["schemas"]);
            let fields = body["properties"].as_object().map_or(0, Map::len);
            assert_eq!(inputs[0] + inputs[1] + fields, tool.locations.len(), "{}", tool.name());
            assert!(body.is_null() || fields > 0, "{} has a body that is no object", tool.name());
        }
    }
}
