//! The wire format of chat completions.

use operations::ports::{ChatMessage, ChatReply, ChatRequest, ToolCall};
use serde_json::{Value, json};

use super::{reasoning::ReasoningFilter, settings::AssistantSettings};

/// Maximum bytes of an answer's text.
pub(super) const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Maximum tool calls of one answer.
pub(super) const MAX_TOOL_CALLS: usize = 32;
/// Maximum bytes of one call's arguments.
pub(super) const MAX_ARGUMENT_BYTES: usize = 128 * 1024;

/// The body of a request.
pub(super) fn request(settings: &AssistantSettings, request: &ChatRequest, streams: bool) -> Vec<u8> {
    let messages: Vec<Value> = request.messages.iter().map(message).collect();
    let mut body = json!({ "model": settings.model, "messages": messages });
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let (name, description, parameters) = (&tool.name, &tool.description, &tool.parameters);
            json!({
                "type": "function",
                "function": { "name": name, "description": description, "parameters": parameters },
            })
        });
        body["tools"] = tools.collect();
    }
    if request.json {
        body["response_format"] = json!({ "type": "json_object" });
    }
    if request.max_tokens > 0 {
        body[settings.token_field] = request.max_tokens.into();
    }
    if streams {
        body["stream"] = true.into();
    }
    body.to_string().into_bytes()
}

fn message(message: &ChatMessage) -> Value {
    match message {
        ChatMessage::System(text) => json!({ "role": "system", "content": text }),
        ChatMessage::User(text) => json!({ "role": "user", "content": text }),
        ChatMessage::Assistant { text, calls } if calls.is_empty() => {
            json!({ "role": "assistant", "content": text })
        }
        ChatMessage::Assistant { text, calls } => {
            let calls: Vec<Value> = calls.iter().map(tool_call).collect();
            json!({ "role": "assistant", "content": text, "tool_calls": calls })
        }
        ChatMessage::Tool { call_id, result } => {
            json!({ "role": "tool", "tool_call_id": call_id, "content": result })
        }
    }
}

fn tool_call(call: &ToolCall) -> Value {
    // Some endpoints refuse a whole conversation because of malformed arguments that their model wrote.
    let sound = serde_json::from_str::<Value>(&call.arguments).is_ok_and(|value| value.is_object());
    let arguments = if sound { call.arguments.as_str() } else { "{}" };
    json!({ "id": call.id, "type": "function", "function": { "name": call.name, "arguments": arguments } })
}

/// Reads a response that is not streamed.
pub(super) fn reply(bytes: &[u8]) -> Result<ChatReply, String> {
    let answer: Value = serde_json::from_slice(bytes).map_err(|_| "its answer is no JSON".to_owned())?;
    if !answer["error"].is_null() {
        return Err(error_text(bytes));
    }
    let message = &answer["choices"][0]["message"];
    if !message.is_object() {
        return Err("its answer holds no message".to_owned());
    }
    let mut reasoning = ReasoningFilter::default();
    let mut text = reasoning.add(&content(&message["content"]));
    text.push_str(&reasoning.finish());
    if text.len() > MAX_TEXT_BYTES {
        return Err("its answer is too long".to_owned());
    }
    let listed = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut calls = Vec::new();
    for call in listed.iter().take(MAX_TOOL_CALLS) {
        let function = &call["function"];
        let arguments = arguments(&function["arguments"]);
        if arguments.len() > MAX_ARGUMENT_BYTES {
            return Err("its answer is too long".to_owned());
        }
        let name = function["name"].as_str().unwrap_or_default().to_owned();
        calls.push(ToolCall { id: call["id"].as_str().unwrap_or_default().to_owned(), name, arguments });
    }
    Ok(ChatReply { text, calls: numbered(calls) })
}

/// The text of a message: a string, or parts of which some are text.
pub(super) fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Arguments as text; some endpoints send the object itself.
pub(super) fn arguments(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Calls without an id get one, since results refer to it.
pub(super) fn numbered(mut calls: Vec<ToolCall>) -> Vec<ToolCall> {
    for index in 0..calls.len() {
        let is_duplicate = calls[..index].iter().any(|earlier| earlier.id == calls[index].id);
        if calls[index].id.is_empty() || is_duplicate {
            calls[index].id = format!("call_{}", index + 1);
        }
    }
    calls
}

/// An endpoint's error message, in one short line.
pub(super) fn error_text(bytes: &[u8]) -> String {
    let parsed: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let error = &parsed["error"];
    let message = error["message"].as_str().or_else(|| error.as_str()).or_else(|| parsed["message"].as_str());
    let message = message.map_or_else(|| String::from_utf8_lossy(bytes).into_owned(), ToOwned::to_owned);
    let line: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect();
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_in_many_forms() {
        let plain = json!({ "choices": [{ "message": { "content": "<think>hm</think>\n\nHi" } }] });
        assert_eq!(reply(plain.to_string().as_bytes()).unwrap().text, "Hi");
        let parts = json!({ "choices": [{ "message": { "content": [{ "type": "text", "text": "Hi" }] } }] });
        assert_eq!(reply(parts.to_string().as_bytes()).unwrap().text, "Hi");
        let calls = json!({ "choices": [{ "message": { "content": null, "tool_calls": [
            { "id": "a", "function": { "name": "f", "arguments": "{\"x\":1}" } },
            { "function": { "name": "g", "arguments": { "y": 2 } } },
            { "id": "a", "function": { "name": "h" } },
        ] } }] });
        let calls = reply(calls.to_string().as_bytes()).unwrap().calls;
        let calls_read: Vec<_> = calls
            .iter()
            .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str()))
            .collect();
        assert_eq!(calls_read, [("a", "f", "{\"x\":1}"), ("call_2", "g", "{\"y\":2}"), ("call_3", "h", "")]);
        for broken in ["", "no json", "{}", "{\"choices\":[]}", "{\"error\":{\"message\":\"overloaded\"}}"] {
            assert!(reply(broken.as_bytes()).is_err(), "{broken}");
        }
    }

    #[test]
    fn broken_arguments_are_not_sent_back() {
        let call = ToolCall { id: "a".to_owned(), name: "f".to_owned(), arguments: "{broken".to_owned() };
        assert_eq!(tool_call(&call)["function"]["arguments"], "{}");
    }
}
