//! Shared by the HTTP clients: the connection pool is created on first use, and a response is read only up to a
//! limit.

use reqwest::{Client, ClientBuilder, Response};
use tokio::sync::OnceCell;

/// A client that is created on first use: loading the system's certificates is slow.
#[derive(Default)]
pub(crate) struct LazyClient(OnceCell<Client>);

impl LazyClient {
    /// The client, built by `prepare` on first use; or why there is none.
    pub(crate) async fn get(
        &self,
        prepare: impl FnOnce(ClientBuilder) -> ClientBuilder + Send + 'static,
    ) -> Result<&Client, String> {
        let build = || {
            let builder = Client::builder().user_agent(concat!("agent-mailbox/", env!("CARGO_PKG_VERSION")));
            prepare(builder).build()
        };
        let client = self.0.get_or_try_init(async || {
            tokio::task::spawn_blocking(build)
                .await
                .map_err(|error| error.to_string())?
                .map_err(|error| error.to_string())
        });
        client.await
    }
}

/// An error without its URL, which may hold a secret.
pub(crate) fn without_address(error: reqwest::Error) -> String {
    error.without_url().to_string()
}

/// The body of a response. One longer than `max` bytes is an error.
pub(crate) async fn read_body(mut answer: Response, max: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(without_address)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > max {
            return Err("its answer is too long".to_owned());
        }
    }
    Ok(bytes)
}
