//! The connection to PostgreSQL that LISTENs: it forwards wake-ups of other nodes, sends those of this one, and detects
//! when the server is down.
//!
//! A server that hangs would block every call for as long as it hangs. This connection probes it twice a second; as
//! soon as it stops responding, all calls fail at once instead of waiting.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicI32, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{
    FutureExt, StreamExt, TryStreamExt,
    future::{ready, try_join3},
    stream::FuturesUnordered,
};
use model::WorkspaceId;
use tokio::sync::watch;
use tokio_postgres::{AsyncMessage, Client};

use super::{
    outgoing_wakes::OutgoingWakes,
    postgres::connector::{ConnectFault, Connector, Messages, timeout_in_slices},
    wake::{Topic, Wake, Wakes},
};
use crate::error::{Error, Result};

/// How often the server is probed.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// The timeout of a probe.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1200);
/// The delay before a lost connection is opened again.
const RECONNECT_DELAY: Duration = Duration::from_millis(250);
/// After this time without an answer a further connection is tried beside the first.
const NEXT_ATTEMPT_DELAY: Duration = Duration::from_secs(1);

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
    /// Starts it. It counts how often the server was lost.
    pub(super) fn start(connector: Arc<Connector>, losses: Arc<AtomicU64>) -> Self {
        let (wakes, outgoing, down) =
            (Wakes::new(), Arc::<OutgoingWakes>::default(), watch::channel(false).0);
        let task = tokio::spawn(run(connector, losses, wakes.clone(), outgoing.clone(), down.clone()));
        Self { wakes, outgoing, down, task }
    }

    /// Wakes the listeners of this node at once, and those of the others as soon as the server passes it on.
    pub(super) fn wake(&self, wakes: Vec<Wake>) {
        let mut outgoing = Vec::with_capacity(wakes.len());
        for mut wake in wakes {
            self.wakes.send(wake.clone());
            wake.handled = self.wakes.has_workers(wake.topic);
            // Nobody else listens to the queue.
            if !(wake.handled && wake.topic == Topic::Queue) {
                outgoing.push(wake);
            }
        }
        self.outgoing.add(outgoing);
    }

    /// Wakes the workers of other nodes, because this one cannot do all of the work.
    pub(super) fn wake_other_nodes(&self, topic: Topic) {
        let workspace = WorkspaceId::from("");
        self.outgoing.add([Wake { topic, workspace, mailbox: None, handled: false }]);
    }

    pub(super) fn wakes(&self) -> &Wakes {
        &self.wakes
    }

    /// Runs the work, but fails as soon as the server is down. While it is, the work is not begun: calls that try to
    /// connect all the time would keep a server from coming back.
    pub(super) async fn unless_down(&self, work: impl Future<Output = Result<()>>) -> Result<()> {
        let unavailable = || Err(Error::Unavailable("PostgreSQL does not answer".into()));
        let mut down = self.down.subscribe();
        if *down.borrow() {
            return unavailable();
        }
        tokio::select! {
            biased;
            result = work => result,
            _ = down.wait_for(|down| *down) => unavailable(),
        }
    }
}

async fn run(
    connector: Arc<Connector>,
    losses: Arc<AtomicU64>,
    wakes: Wakes,
    outgoing: Arc<OutgoingWakes>,
    down: watch::Sender<bool>,
) {
    loop {
        let lost = AssertUnwindSafe(listen(&connector, &wakes, &outgoing, &down)).catch_unwind().await;
        // Before calls fail, so that none of them finds a connection from before.
        losses.fetch_add(1, Ordering::AcqRel);
        match lost {
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
    connector: &Connector,
    wakes: &Wakes,
    outgoing: &OutgoingWakes,
    down: &watch::Sender<bool>,
) -> Result<std::convert::Infallible> {
    let (client, messages) = connect(connector).await?;
    let _elsewhere = PreferNext(connector);
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

/// Connects, and tries again beside an attempt that hears nothing: what it has sent may be lost, although the way to the
/// server is open again by now. Each attempt ends by itself, so there are never more than a few.
async fn connect(connector: &Connector) -> Result<(Client, Messages), ConnectFault> {
    let mut attempts = FuturesUnordered::new();
    loop {
        attempts.push(connector.connect());
        if let Ok(Some(connected)) = tokio::time::timeout(NEXT_ATTEMPT_DELAY, attempts.next()).await {
            return connected;
        }
    }
}

/// Lets other hosts be tried first when a connection ends: the one that was lost may be frozen.
struct PreferNext<'a>(&'a Connector);

impl Drop for PreferNext<'_> {
    fn drop(&mut self) {
        self.0.prefer_next();
    }
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
        let answered = timeout_in_slices(PROBE_TIMEOUT, client.batch_execute("")).await;
        answered.ok_or_else(|| Error::Unavailable("it does not answer".into()))??;
        tokio::time::sleep(PROBE_INTERVAL).await;
    }
}
