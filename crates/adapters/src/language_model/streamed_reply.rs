//! A streamed response, assembled from its pieces: text, and tool calls whose names and arguments come in parts.

use operations::ports::{ChatReply, ToolCall};
use serde_json::Value;

use super::{
    reasoning::ReasoningFilter,
    wire::{MAX_ARGUMENT_BYTES, MAX_TEXT_BYTES, MAX_TOOL_CALLS, arguments, content, error_text, numbered},
};

/// Maximum bytes of one line of the stream.
const MAX_LINE_BYTES: usize = 1 << 20;

/// What has arrived of a response so far.
#[derive(Default)]
pub(super) struct StreamedReply {
    /// The incomplete line.
    line: Vec<u8>,
    text: String,
    reasoning: ReasoningFilter,
    calls: Vec<(i64, ToolCall)>,
    /// Whether the model has finished.
    finished: bool,
    /// Whether the stream has ended.
    done: bool,
}

impl StreamedReply {
    /// Adds bytes as they arrive, and returns the text in them.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<String, String> {
        let mut answer_text = String::new();
        for byte in bytes {
            if *byte != b'\n' {
                if self.line.len() >= MAX_LINE_BYTES {
                    return Err("its answer has a line that is too long".to_owned());
                }
                self.line.push(*byte);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            answer_text.push_str(&self.add_line(&line)?);
        }
        Ok(answer_text)
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    fn add_line(&mut self, line: &[u8]) -> Result<String, String> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(data) = line.strip_prefix(b"data:") else { return Ok(String::new()) };
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            self.done = true;
            return Ok(String::new());
        }
        let chunk: Value = serde_json::from_slice(data)
            .map_err(|_| "its answer holds a piece that is no JSON".to_owned())?;
        if !chunk["error"].is_null() {
            return Err(error_text(data));
        }
        let choice = &chunk["choices"][0];
        if choice["finish_reason"].is_string() {
            self.finished = true;
        }
        let delta = &choice["delta"];
        for call in delta["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default() {
            self.add_call(call)?;
        }
        let piece = self.reasoning.add(&content(&delta["content"]));
        self.text.push_str(&piece);
        if self.text.len() > MAX_TEXT_BYTES {
            return Err("its answer is too long".to_owned());
        }
        Ok(piece)
    }

    /// A part of a tool call. Calls are told apart by their index; without one, a new id starts a new call.
    fn add_call(&mut self, part: &Value) -> Result<(), String> {
        let (id, function) = (part["id"].as_str().unwrap_or_default(), &part["function"]);
        let last = self.calls.last().map(|(number, call)| (*number, call.id.clone()));
        let number = part["index"].as_i64().unwrap_or_else(|| match last {
            Some((number, known)) if id.is_empty() || known == id => number,
            Some((number, _)) => number + 1,
            None => 0,
        });
        let index = match self.calls.iter().position(|(known, _)| *known == number) {
            Some(index) => index,
            None if self.calls.len() >= MAX_TOOL_CALLS => {
                return Err("its answer calls too many tools".to_owned());
            }
            None => {
                let call = ToolCall { id: String::new(), name: String::new(), arguments: String::new() };
                self.calls.push((number, call));
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[index].1;
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        // Some endpoints send the whole name with every part.
        if let Some(name) = function["name"].as_str().filter(|name| *name != call.name) {
            call.name.push_str(name);
        }
        call.arguments.push_str(&arguments(&function["arguments"]));
        if call.arguments.len() > MAX_ARGUMENT_BYTES || call.name.len() > 256 {
            return Err("its answer is too long".to_owned());
        }
        Ok(())
    }

    /// The response, with text that was held back. A truncated one is an error.
    pub(super) fn finish(mut self) -> Result<(ChatReply, String), String> {
        let line = std::mem::take(&mut self.line);
        let mut rest = self.add_line(&line)?;
        if !self.done && !self.finished {
            return Err("its answer broke off".to_owned());
        }
        let held_back = std::mem::take(&mut self.reasoning).finish();
        self.text.push_str(&held_back);
        rest.push_str(&held_back);
        let calls = self.calls.into_iter().map(|(_, call)| call).collect();
        Ok((ChatReply { text: self.text, calls: numbered(calls) }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assembled(stream: &str, size: usize) -> Result<(ChatReply, String), String> {
        let mut gathering = StreamedReply::default();
        let mut answer_text = String::new();
        for chunk in stream.as_bytes().chunks(size) {
            answer_text.push_str(&gathering.add(chunk)?);
        }
        let (reply, rest) = gathering.finish()?;
        Ok((reply, answer_text + &rest))
    }

    #[test]
    fn pieces_of_any_size_make_the_same_answer() {
        let stream = concat!(
            ": hello\r\n\r\n",
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"<thi\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"nk>well</th\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"ink>\\n\\nGrüße \"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"you\"},\"finish_reason\":\"stop\"}]}\n\n",
            "data: {\"choices\":[],\"usage\":{}}\n\n",
            "data: [DONE]\n\n",
        );
        for size in [1, 2, 3, 7, 64, 10_000] {
            let (reply, answer_text) = assembled(stream, size).unwrap();
            assert_eq!((reply.text.as_str(), answer_text.as_str()), ("Grüße you", "Grüße you"), "{size}");
        }
    }

    #[test]
    fn calls_come_in_parts() {
        let stream = concat!(
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"list\",\"arguments\":\"\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"l\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"read\",\"arguments\":\"{}\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"list\",\"arguments\":\"imit\\\":1}\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
        );
        let (reply, _) = assembled(stream, 5).unwrap();
        let answer_text: Vec<_> = reply
            .calls
            .iter()
            .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str()))
            .collect();
        assert_eq!(answer_text, [("a", "list", "{\"limit\":1}"), ("b", "read", "{}")]);
    }

    #[test]
    fn what_broke_off_is_no_answer() {
        let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
        assert!(assembled(begun, 9).is_err());
        assert!(assembled("data: {\"choices\":[{\"delta\":{\"con", 9).is_err());
        assert!(assembled("data: {\"error\":{\"message\":\"overloaded\"}}\n\n", 9).is_err());
        assert!(assembled("", 9).is_err());
    }
}
