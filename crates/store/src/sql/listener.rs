//! The one connection to PostgreSQL that only listens: it passes wake-ups on, and notices when the server is gone.
//!
//! A server that hangs would hold every call for as long as it hangs. This connection asks it twice a second; as soon
//! as it does not answer, all calls are told so at once instead of waiting.

use std::{
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
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
    postgres::tls,
    wake::{Topic, Wake, Wakes},
};
use crate::error::{Error, Result};

/// How often the server is asked whether it is there.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How long it may take to answer, and in how many parts that time passes: one in which this process itself was stopped
/// or starved counts as one part, however long it was, and says nothing about the server.
const ANSWER_WITHIN: Duration = Duration::from_millis(1200);
const PARTS: u32 = 4;
/// The pause before a lost connection is made again.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

pub(super) struct Listener {
    wakes: Wakes,
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
        let (wakes, down) = (Wakes::new(), watch::channel(false).0);
        let task = tokio::spawn(run(config, wakes.clone(), down.clone()));
        Self { wakes, down, task }
    }

    pub(super) fn wakes(&self, topic: Topic) -> broadcast::Receiver<Wake> {
        self.wakes.listen(topic)
    }

    /// Does the work, but only for as long as the server is there.
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

async fn run(config: Config, wakes: Wakes, down: watch::Sender<bool>) {
    loop {
        match AssertUnwindSafe(listen(&config, &wakes, &down)).catch_unwind().await {
            Ok(Err(error)) if !down.send_replace(true) => tracing::warn!(%error, "lost PostgreSQL"),
            Ok(Err(_)) => {}
            // A new connection starts over; until it is there, all calls are refused.
            Err(_) => {
                down.send_replace(true);
                tracing::error!(worker = "database-listener", "worker panicked; restarting");
            }
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

async fn listen(
    config: &Config,
    wakes: &Wakes,
    down: &watch::Sender<bool>,
) -> Result<std::convert::Infallible> {
    let (client, messages) = answer_within(ANSWER_WITHIN * 2, connect(config)).await??;
    let pass_on = messages.map_err(Error::from).try_for_each(|message| {
        if let AsyncMessage::Notification(note) = message
            && let Some(wake) = Wake::decode(note.payload())
        {
            wakes.send(wake);
        }
        ready(Ok(()))
    });
    let subscribe = async {
        client.batch_execute(&format!("LISTEN {}", Wake::CHANNEL)).await?;
        if down.send_replace(false) {
            tracing::info!("PostgreSQL is back");
        }
        Ok(())
    };
    // The connection only moves while its messages are read, so all three go on together until one fails.
    try_join3(subscribe, pass_on, keep_asking(&client)).await.map(|((), (), never)| never)
}

async fn keep_asking(client: &Client) -> Result<std::convert::Infallible> {
    loop {
        answer_within(ANSWER_WITHIN, client.batch_execute("")).await??;
        tokio::time::sleep(ASK_EVERY).await;
    }
}

/// Waits for an answer of the server, and gives it up after a while in which it could have been noticed.
async fn answer_within<T>(time: Duration, answer: impl Future<Output = T>) -> Result<T> {
    let mut answer = pin!(answer);
    for _ in 0..PARTS {
        if let Ok(answer) = tokio::time::timeout(time / PARTS, &mut answer).await {
            return Ok(answer);
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

    use super::answer_within;

    #[tokio::test]
    async fn a_time_in_which_nothing_ran_is_no_silence_of_the_server() {
        let time = Duration::from_secs(1);
        let answer = async {
            thread::sleep(time * 2);
            tokio::time::sleep(time / 100).await;
            7
        };
        assert_eq!(answer_within(time, answer).await.unwrap(), 7);
        assert!(answer_within(time, pending::<()>()).await.is_err());
    }
}
