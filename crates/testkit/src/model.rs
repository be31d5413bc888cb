//! A language model, as far as the service sees one: it answers by a script, and remembers what it was asked.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
};

use operations::outside::{Assistant, AssistantFault, ChatDeltas, ChatReply, ChatRequest, ToolCall};

type Script = dyn Fn(&ChatRequest) -> Result<ChatReply, AssistantFault> + Send + Sync;

/// A model that a test writes.
#[derive(Clone)]
pub struct ScriptedModel {
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<ChatRequest>>>,
}

impl ScriptedModel {
    /// A model that answers as the function says.
    pub fn new(
        script: impl Fn(&ChatRequest) -> Result<ChatReply, AssistantFault> + Send + Sync + 'static,
    ) -> Self {
        Self { script: Arc::new(script), asked: Arc::default() }
    }

    /// A model that always says the same.
    pub fn saying(text: &str) -> Self {
        let text = text.to_owned();
        Self::new(move |_| Ok(ChatReply { text: text.clone(), calls: Vec::new() }))
    }

    /// Everything that it was asked so far.
    pub fn asked(&self) -> Vec<ChatRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// A reply that calls one tool.
    pub fn call(name: &str, arguments: &serde_json::Value) -> ChatReply {
        let call =
            ToolCall { id: "call_1".to_owned(), name: name.to_owned(), arguments: arguments.to_string() };
        ChatReply { text: String::new(), calls: vec![call] }
    }
}

impl Assistant for ScriptedModel {
    fn model(&self) -> &'static str {
        "scripted"
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        deltas: Option<ChatDeltas>,
    ) -> Pin<Box<dyn Future<Output = Result<ChatReply, AssistantFault>> + Send + 'a>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(request.clone());
            let reply = (self.script)(request)?;
            if let Some(deltas) = deltas {
                for piece in reply.text.split_inclusive(' ') {
                    let _ = deltas.send(piece.to_owned()).await;
                }
            }
            Ok(reply)
        })
    }
}
