//! The one connection to PostgreSQL that only listens: it passes wake-ups on, and notices when the server is gone.
//!
//! A server that hangs would hold every call for as long as it hangs. This connection asks it twice a second; as soon
//! as it does not answer, all calls are told so at once instead of waiting.

use std::{pin::Pin, time::Duration};

use futures_util::{
    Stream, TryStreamExt,
    future::{ready, try_join3},
    stream::poll_fn,
};
use tokio::sync::{broadcast, watch};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, config::SslMode};

use super::{Topic, Wake, postgres::tls, wake::Wakes};
use crate::error::{Error, Result};

/// How often the server is asked whether it is there.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How long it may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_millis(1200);
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
    pub(super) async fn unless_down<T, E: From<Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut down = self.down.subscribe();
        tokio::select! {
            biased;
            result = work => result,
            _ = down.wait_for(|down| *down) => {
                Err(E::from(Error::Unavailable("PostgreSQL does not answer".to_owned())))
            }
        }
    }
}

async fn run(config: Config, wakes: Wakes, down: watch::Sender<bool>) {
    loop {
        let Err(error) = listen(&config, &wakes, &down).await;
        if !down.send_replace(true) {
            tracing::warn!(%error, "lost PostgreSQL");
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

async fn listen(
    config: &Config,
    wakes: &Wakes,
    down: &watch::Sender<bool>,
) -> Result<std::convert::Infallible> {
    let connecting = tokio::time::timeout(ANSWER_WITHIN * 2, connect(config));
    let (client, messages) = connecting.await.map_err(|_| no_answer())??;
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
        tokio::time::timeout(ANSWER_WITHIN, client.batch_execute("")).await.map_err(|_| no_answer())??;
        tokio::time::sleep(ASK_EVERY).await;
    }
}

fn no_answer() -> Error {
    Error::Unavailable("it does not answer".to_owned())
}

type MessageStream = Pin<Box<dyn Stream<Item = Result<AsyncMessage, tokio_postgres::Error>> + Send>>;

async fn connect(config: &Config) -> Result<(Client, MessageStream)> {
    if config.get_ssl_mode() == SslMode::Disable {
        let (client, mut connection) = config.connect(NoTls).await?;
        Ok((client, Box::pin(poll_fn(move |context| connection.poll_message(context)))))
    } else {
        let (client, mut connection) = config.connect(tls()?).await?;
        Ok((client, Box::pin(poll_fn(move |context| connection.poll_message(context)))))
    }
}
