//! The embedded model behind the trait: what somebody waits for is computed on a few blocking threads, everything else
//! on threads of low priority, a text at a time: documents on one, mail on one that stands back still further.

use std::sync::OnceLock;

use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::core::ports::{EmbedFault, Embedder, Embedding, Urgency};

/// Texts that are embedded at the same time while somebody waits.
const MAX_CONCURRENT: usize = 2;
/// How far the thread for documents stands back: it gets a tenth of what others take, so that it goes on all the same.
const SOON: i32 = 10;
/// The same for mail, whose passages nobody sees coming: next to nothing while there is other work.
const IDLE: i32 = 19;
/// Requests that may wait for the thread of low priority.
const WAITING: usize = 4;

type Job = (Vec<String>, oneshot::Sender<Vec<Vec<f32>>>);

/// The embedded model.
pub struct LocalEmbedder {
    turns: Semaphore,
    soon: OnceLock<mpsc::Sender<Job>>,
    idle: OnceLock<mpsc::Sender<Job>>,
}

impl Default for LocalEmbedder {
    fn default() -> Self {
        Self { turns: Semaphore::new(MAX_CONCURRENT), soon: OnceLock::new(), idle: OnceLock::new() }
    }
}

impl LocalEmbedder {
    async fn embed_now(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedFault> {
        let _turn = self.turns.acquire().await.map_err(|error| unavailable(&error))?;
        let work = tokio::task::spawn_blocking(move || texts.iter().map(|text| embed::embed(text)).collect());
        work.await.map_err(|error| unavailable(&error))
    }
}

/// Hands texts to a thread and waits for it.
async fn embed_on(queue: &mpsc::Sender<Job>, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedFault> {
    let (answer, answered) = oneshot::channel();
    queue.send((texts, answer)).await.map_err(|error| unavailable(&error))?;
    answered.await.map_err(|error| unavailable(&error))
}

fn unavailable(error: &dyn std::error::Error) -> EmbedFault {
    EmbedFault::Unavailable(error.to_string())
}

/// A thread that only computes what no other thread keeps the processor from; it ends with the queue.
fn start_thread(niceness: i32) -> mpsc::Sender<Job> {
    let (sender, mut jobs) = mpsc::channel::<Job>(WAITING);
    let run = move || {
        // Without it everything still works, only less politely.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::setpriority_process(None, niceness);
        #[cfg(not(target_os = "linux"))]
        let _ = niceness;
        while let Some((texts, answer)) = jobs.blocking_recv() {
            let _ = answer.send(texts.iter().map(|text| embed::embed(text)).collect());
        }
    };
    if let Err(error) = std::thread::Builder::new().name("embed".to_owned()).spawn(run) {
        // The queue has lost its reader, so that every request fails.
        tracing::error!(%error, "no thread for the background");
    }
    sender
}

impl Embedder for LocalEmbedder {
    fn model(&self) -> &str {
        embed::NAME
    }

    fn dimension(&self) -> usize {
        embed::DIMENSION
    }

    fn most_tokens(&self) -> usize {
        // Without the two at the ends.
        embed::MAX_TOKENS - 2
    }

    fn count_tokens(&self, text: &str, most: usize) -> usize {
        embed::count_tokens(text, most)
    }

    fn embed(&self, texts: Vec<String>, urgency: Urgency) -> Embedding<'_> {
        Box::pin(async move {
            match urgency {
                Urgency::Now => self.embed_now(texts).await,
                Urgency::Soon => embed_on(self.soon.get_or_init(|| start_thread(SOON)), texts).await,
                Urgency::Idle => embed_on(self.idle.get_or_init(|| start_thread(IDLE)), texts).await,
            }
        })
    }
}
