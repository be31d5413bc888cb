//! A language model, as far as the service sees one: it answers by a script, and remembers what it was asked.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
};

use operations::ports::{
    Assistant, AssistantFault, ChatDeltas, ChatMessage, ChatReply, ChatRequest, ToolCall,
};
use tokio::sync::Semaphore;

type Script = dyn Fn(&ChatRequest) -> Result<ChatReply, AssistantFault> + Send + Sync;

/// A model that a test writes.
#[derive(Clone)]
pub struct ScriptedModel {
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<ChatRequest>>>,
    gate: Option<Arc<Semaphore>>,
    concurrency: usize,
}

impl ScriptedModel {
    /// A model that answers as the function says.
    pub fn new(
        script: impl Fn(&ChatRequest) -> Result<ChatReply, AssistantFault> + Send + Sync + 'static,
    ) -> Self {
        Self { script: Arc::new(script), asked: Arc::default(), gate: None, concurrency: usize::MAX }
    }

    /// The same model, which takes its time: it answers as often as the gate lets it.
    pub fn behind(self, gate: Arc<Semaphore>) -> Self {
        Self { gate: Some(gate), ..self }
    }

    /// The same model, which says that it takes so many questions at the same time.
    pub fn taking(self, concurrency: usize) -> Self {
        Self { concurrency, ..self }
    }

    /// A model that answers questions of JSON with JSON, as the function says.
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
