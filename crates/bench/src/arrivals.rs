//! Mail that arrives while something else is measured, by the same code as behind an SMTP session.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use model::emails::InboundProvider;
use operations::{
    App,
    inbound::{self, Arrival},
};
use tokio::{
    sync::Semaphore,
    task::{AbortHandle, JoinSet},
};

use crate::messages;

/// Messages that may be on their way at once.
const MAX_CONCURRENT: usize = 64;

/// Receives a message, durably.
pub(crate) async fn receive(app: &App, to: String, n: usize, text: &str) {
    let from = "sender@remote.test";
    let recipient = inbound::route(app, Some(from), &to).await.expect("the mailbox takes mail");
    let raw = format!(
        "From: <{from}>\r\nTo: <{to}>\r\nSubject: Your code\r\nMessage-ID: <{n}@remote.test>\r\n\r\n{text}\r\n"
    );
    let arrival = Arrival {
        provider: Some(InboundProvider::EdgeRouting),
        from: Some(from.to_owned()),
        recipients: vec![recipient],
        raw: raw.into(),
        client: None,
    };
    inbound::receive(app, arrival).await.expect("the message is received");
}

/// Messages that keep coming into a mailbox until this is dropped.
pub(crate) struct Stream {
    task: AbortHandle,
    started: Instant,
    received: Arc<AtomicUsize>,
}

impl Stream {
    pub(crate) fn start(app: &App, to: &'static str, per_second: u32) -> Self {
        let received = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(keep_receiving(app.clone(), to, per_second, received.clone()));
        Self { task: task.abort_handle(), started: Instant::now(), received }
    }

    /// Messages per second so far.
    pub(crate) fn rate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let received = self.received.load(Ordering::Relaxed) as f64;
        received / self.started.elapsed().as_secs_f64()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep_receiving(app: App, to: &'static str, per_second: u32, received: Arc<AtomicUsize>) {
    let (room, mut tasks) = (Arc::new(Semaphore::new(MAX_CONCURRENT)), JoinSet::new());
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / per_second);
    // No other stream has sent messages with these numbers.
    let first = app.now().as_micros().unsigned_abs();
    loop {
        ticks.tick().await;
        let permit = room.clone().acquire_owned().await.expect("the semaphore is never closed");
        let (app, received) = (app.clone(), received.clone());
        tasks.spawn(async move {
            let n = received.fetch_add(1, Ordering::Relaxed);
            let text = messages::own_body(n);
            receive(&app, to.to_owned(), usize::try_from(first).unwrap_or_default() + n, &text).await;
            drop(permit);
        });
        while tasks.try_join_next().is_some() {}
    }
}
