//! A fake language model: it answers by a script, and records what it was asked.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
};

use operations::ports::{
    Assistant, AssistantFault, ChatDeltas, ChatMessage, ChatReply, ChatRequest, ToolCall,
};
use tokio::sync::Semaphore;

type Script = dyn Fn(&ChatRequest) -> Result<ChatReply, AssistantFault> + Send + Sync;

/// A scripted model.
#[derive(Clone)]
pub struct ScriptedModel {
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<ChatRequest>>>,
    gate: Option<Arc<Semaphore>>,
    concurrency: usize,
}

impl ScriptedModel {
    /// A model that answers with this function.
    pub fn new(
        script: impl Fn(&ChatRequest) -> Result<ChatReply, AssistantFault> + Send + Sync + 'static,
    ) -> Self {
        Self { script: Arc::new(script), asked: Arc::default(), gate: None, concurrency: usize::MAX }
    }

    /// The same model, which answers only with a permit of the semaphore.
    pub fn gated_by(self, gate: Arc<Semaphore>) -> Self {
        Self { gate: Some(gate), ..self }
    }

    /// The same model with this maximum of concurrent requests.
    pub fn with_concurrency(self, concurrency: usize) -> Self {
        Self { concurrency, ..self }
    }

    /// A model that answers requests for JSON with JSON from this function.
    pub fn answering(
        script: impl Fn(&serde_json::Value) -> serde_json::Value + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |request| {
            let question = request.messages.iter().find_map(|message| match message {
                ChatMessage::User(text) => serde_json::from_str(text).ok(),
                _ => None,
            });
            let text = script(&question.unwrap_or_default()).to_string();
            Ok(ChatReply { text, calls: Vec::new() })
        })
    }

    /// A model that always gives the same answer.
    pub fn saying(text: &str) -> Self {
        let text = text.to_owned();
        Self::new(move |_| Ok(ChatReply { text: text.clone(), calls: Vec::new() }))
    }

    /// All requests so far.
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

    fn concurrency(&self) -> usize {
        self.concurrency
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        deltas: Option<ChatDeltas>,
    ) -> Pin<Box<dyn Future<Output = Result<ChatReply, AssistantFault>> + Send + 'a>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(request.clone());
            if let Some(gate) = &self.gate {
                gate.acquire().await.unwrap().forget();
            }
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
