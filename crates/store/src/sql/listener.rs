//! The connection to PostgreSQL that LISTENs: it forwards wake-ups of other nodes, sends those of this one, and detects
//! when the server is down.
//!
//! A server that hangs would block every call for as long as it hangs. This connection probes it twice a second; as
//! soon as it stops responding, all calls fail at once instead of waiting.

use std::{
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::Duration,
};

use futures_util::{
    FutureExt, Stream, TryStreamExt,
    future::{ready, try_join3},
    stream::poll_fn,
};
use tokio::sync::{broadcast, watch};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, config::SslMode};

use super::{
    outgoing_wakes::OutgoingWakes,
    postgres::tls,
    wake::{Topic, Wake, Wakes},
};
use crate::error::{Error, Result};

/// How often the server is probed.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// The timeout of a probe, measured in slices: a time in which this process itself was stopped or starved counts as
/// one slice, however long it was, and says nothing about the server.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1200);
const TIMEOUT_SLICES: u32 = 4;
/// The delay before a lost connection is opened again.
const RECONNECT_DELAY: Duration = Duration::from_millis(250);

pub(super) struct Listener {
    wakes: Wakes,
    outgoing: Arc<OutgoingWakes>,
    down: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listener {
    pub(super) fn start(config: Config) -> Self {
        let (wakes, outgoing, down) =
            (Wakes::new(), Arc::<OutgoingWakes>::default(), watch::channel(false).0);
        let task = tokio::spawn(run(config, wakes.clone(), outgoing.clone(), down.clone()));
        Self { wakes, outgoing, down, task }
    }

    /// Wakes the listeners of this node at once, and those of the others as soon as the server passes it on.
    pub(super) fn wake(&self, wakes: Vec<Wake>) {
        for wake in &wakes {
            self.wakes.send(wake.clone());
        }
        self.outgoing.add(wakes);
    }

    pub(super) fn wakes(&self, topic: Topic) -> broadcast::Receiver<Wake> {
        self.wakes.listen(topic)
    }

    /// Runs the work, but fails as soon as the server is down.
    pub(super) async fn unless_down(&self, work: impl Future<Output = Result<()>>) -> Result<()> {
        let mut down = self.down.subscribe();
        tokio::select! {
            biased;
            result = work => result,
            _ = down.wait_for(|down| *down) => {
                Err(Error::Unavailable("PostgreSQL does not answer".into()))
            }
        }
    }
}

async fn run(config: Config, wakes: Wakes, outgoing: Arc<OutgoingWakes>, down: watch::Sender<bool>) {
    loop {
        match AssertUnwindSafe(listen(&config, &wakes, &outgoing, &down)).catch_unwind().await {
            Ok(Err(error)) if !down.send_replace(true) => {
                tracing::warn!(%error, "PostgreSQL connection lost; reconnecting");
            }
            Ok(Err(_)) => {}
            // The next connection starts over; until then all calls are rejected.
            Err(_) => {
                down.send_replace(true);
                tracing::error!(worker = "database-listener", "worker panicked; restarting");
            }
        }
        tokio::time::sleep(RECONNECT_DELAY).await;
    }
}

async fn listen(
    config: &Config,
    wakes: &Wakes,
    outgoing: &OutgoingWakes,
    down: &watch::Sender<bool>,
) -> Result<std::convert::Infallible> {
    let (client, messages) = timeout_in_slices(PROBE_TIMEOUT * 2, connect(config)).await??;
    // The server sends our own wake-ups back to us.
    let own = AtomicI32::new(0);
    let forward = messages.map_err(Error::from).try_for_each(|message| {
        if let AsyncMessage::Notification(note) = message
            && note.process_id() != own.load(Ordering::Relaxed)
            && let Some(wake) = Wake::decode(note.payload())
        {
            wakes.send(wake);
        }
        ready(Ok(()))
    });
    let send = async {
        own.store(client.query_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)?, Ordering::Relaxed);
        // Nobody waits until a wake-up is on disk.
        client.batch_execute(&format!("SET synchronous_commit = off; LISTEN {}", Wake::CHANNEL)).await?;
        if down.send_replace(false) {
            tracing::info!("PostgreSQL connection restored");
        }
        send_forever(&client, outgoing).await
    };
    // The connection only makes progress while its messages are polled, so all run together until one fails.
    try_join3(send, forward, probe_forever(&client)).await.map(|(never, ..)| never)
}

/// Sends the wake-ups of this node.
async fn send_forever(client: &Client, outgoing: &OutgoingWakes) -> Result<std::convert::Infallible> {
    let notify = client.prepare("SELECT pg_notify($1, note) FROM unnest($2::TEXT[]) AS note").await?;
    loop {
        let notes: Vec<String> = outgoing.take().await.iter().map(Wake::encode).collect();
        client.execute(&notify, &[&Wake::CHANNEL, &notes]).await?;
    }
}

async fn probe_forever(client: &Client) -> Result<std::convert::Infallible> {
    loop {
        timeout_in_slices(PROBE_TIMEOUT, client.batch_execute("")).await??;
        tokio::time::sleep(PROBE_INTERVAL).await;
    }
}

/// Waits for a response of the server, with a timeout that only counts slices in which this process was running.
async fn timeout_in_slices<T>(time: Duration, response: impl Future<Output = T>) -> Result<T> {
    let mut response = pin!(response);
    for _ in 0..TIMEOUT_SLICES {
        if let Ok(response) = tokio::time::timeout(time / TIMEOUT_SLICES, &mut response).await {
            return Ok(response);
        }
    }
    Err(Error::Unavailable("it does not answer".into()))
}

type MessageStream = Pin<Box<dyn Stream<Item = Result<AsyncMessage, tokio_postgres::Error>> + Send>>;

async fn connect(config: &Config) -> Result<(Client, MessageStream)> {
    if config.get_ssl_mode() == SslMode::Disable {
        let (client, mut connection) = config.connect(NoTls).await?;
        Ok((client, Box::pin(poll_fn(move |context| connection.poll_message(context)))))
    } else {
        let (client, mut connection) = config.connect(tls::connector()?).await?;
        Ok((client, Box::pin(poll_fn(move |context| connection.poll_message(context)))))
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, thread, time::Duration};

    use super::timeout_in_slices;

    #[tokio::test]
    async fn time_in_which_this_process_was_stopped_does_not_count() {
        let time = Duration::from_secs(1);
        let response = async {
            thread::sleep(time * 2);
            tokio::time::sleep(time / 100).await;
            7
        };
        assert_eq!(timeout_in_slices(time, response).await.unwrap(), 7);
        assert!(timeout_in_slices(time, pending::<()>()).await.is_err());
    }
}
