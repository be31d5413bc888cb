//! The embedded model behind the port: urgent texts are computed on a few blocking threads, others on low-priority
//! threads: one for documents, one with even lower priority for mail, which also pauses while the service is busy. The
//! texts of a request are computed together.

use std::sync::OnceLock;

use tokio::sync::{Semaphore, mpsc, oneshot};

use super::idle_time::IdleTime;
use crate::core::ports::{EmbedFault, Embedder, Embedding, Urgency};

/// Requests of waiting callers that are processed at the same time.
const MAX_CONCURRENT: usize = 2;
/// The niceness of the thread for documents: about a tenth of a normal share, so that it still makes progress.
const DOCUMENT_NICENESS: i32 = 10;
/// The niceness of the thread for mail, which no caller waits for: next to nothing while there is other work.
const MAIL_NICENESS: i32 = 19;
/// Requests that may be queued for a low-priority thread.
const QUEUE_CAPACITY: usize = 4;

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
        let work = tokio::task::spawn_blocking(move || embed::embed_all(&texts));
        work.await.map_err(|error| unavailable(&error))
    }
}

/// Sends texts to a thread and waits for it.
async fn embed_on(queue: &mpsc::Sender<Job>, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedFault> {
    let (answer, answered) = oneshot::channel();
    queue.send((texts, answer)).await.map_err(|error| unavailable(&error))?;
    answered.await.map_err(|error| unavailable(&error))
}

fn unavailable(error: &dyn std::error::Error) -> EmbedFault {
    EmbedFault::Unavailable(error.to_string())
}

/// A low-priority thread, which may pause while the service is busy; it ends with its queue.
fn start_thread(niceness: i32, gives_way: bool) -> mpsc::Sender<Job> {
    let (sender, mut jobs) = mpsc::channel::<Job>(QUEUE_CAPACITY);
    let run = move || {
        // Without it everything still works, with less regard for other work.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::setpriority_process(None, niceness);
        #[cfg(not(target_os = "linux"))]
        let _ = niceness;
        while let Some((texts, answer)) = jobs.blocking_recv() {
            let mut idle_time = gives_way.then(IdleTime::begin);
            let pause = || idle_time.iter_mut().for_each(IdleTime::pause);
            let _ = answer.send(embed::embed_in_steps(&texts, pause));
        }
    };
    if let Err(error) = std::thread::Builder::new().name("embed".to_owned()).spawn(run) {
        // The queue has no reader, so every request fails.
        tracing::error!(%error, "embedding thread not started; operator action needed");
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

    fn max_tokens(&self) -> usize {
        // Without the start and end tokens.
        embed::MAX_TOKENS - 2
    }

    fn count_tokens(&self, text: &str, limit: usize) -> usize {
        embed::count_tokens(text, limit)
    }

    fn embed(&self, texts: Vec<String>, urgency: Urgency) -> Embedding<'_> {
        Box::pin(async move {
            match urgency {
                Urgency::Now => self.embed_now(texts).await,
                Urgency::Soon => {
                    embed_on(self.soon.get_or_init(|| start_thread(DOCUMENT_NICENESS, false)), texts).await
                }
                Urgency::Idle => {
                    embed_on(self.idle.get_or_init(|| start_thread(MAIL_NICENESS, true)), texts).await
                }
            }
        })
    }
}
