//! The wire format of tool servers: JSON-RPC 2.0, answered as JSON or as an event stream.

use serde_json::{Value, json};

/// A request.
pub(super) fn request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string().into_bytes()
}

/// A notification, which gets no response.
pub(super) fn notification(method: &str) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "method": method }).to_string().into_bytes()
}

/// Whether an event stream contains the response to a request. Servers may send other messages before it.
pub(super) fn is_answered(stream: &[u8]) -> bool {
    // Only checked when an event may just have ended.
    let ended = stream.ends_with(b"\n\n") || stream.ends_with(b"\r\n\r\n") || stream.ends_with(b"\r\r");
    ended && events(stream).iter().any(is_answer)
}

/// The response to a request, in either form.
pub(super) fn answer(media_type: &str, body: &[u8], id: u64) -> Option<Value> {
    let all = match media_type {
        "text/event-stream" => events(body),
        _ => match serde_json::from_slice(body) {
            Ok(Value::Array(all)) => all,
            Ok(one) => vec![one],
            Err(_) => return None,
        },
    };
    all.into_iter().find(|one| is_answer(one) && one["id"] == id)
}

fn is_answer(message: &Value) -> bool {
    message.get("method").is_none() && (message.get("result").is_some() || message.get("error").is_some())
}

/// The messages in an event stream; invalid JSON is skipped.
fn events(stream: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(stream).replace("\r\n", "\n").replace('\r', "\n");
    let data = |block: &str| {
        let lines: Vec<&str> = block
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        serde_json::from_str(&lines.join("\n")).ok()
    };
    text.split("\n\n").filter_map(data).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found_in_json_and_in_streams() {
        let plain = br#"{"jsonrpc":"2.0","id":3,"result":{"a":1}}"#;
        assert_eq!(answer("application/json", plain, 3).unwrap()["result"]["a"], 1);
        assert!(answer("application/json", plain, 4).is_none());
        assert!(answer("application/json", b"<html>", 3).is_none());
        let stream = b": hi\r\n\r\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\r\n\r\n\
                       data: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":3,\"error\":{\"message\":\"no\"}}\r\n\r\n";
        assert_eq!(answer("text/event-stream", stream, 3).unwrap()["error"]["message"], "no");
        assert!(is_answered(stream));
        assert!(!is_answered(&stream[..stream.len() - 1]));
        // A server that asks something in turn has not answered.
        let asks =
            b"data: {\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"sampling/createMessage\",\"result\":1}\n\n";
        assert!(!is_answered(asks));
        assert!(answer("text/event-stream", asks, 3).is_none());
    }
}
