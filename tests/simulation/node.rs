//! One process of the service: a runtime of its own, so that killing it ends everything that it was doing.

use std::time::Duration;

use operations::App;
use testkit::{Server, ServerOptions, Stage};
use tokio::runtime::Runtime;

/// A node.
pub(super) struct Node {
    // Both are there until it is killed. The server goes first.
    server: Option<Server>,
    runtime: Option<Runtime>,
    /// Whether it answers nobody and does nothing for now.
    pub(super) frozen: bool,
}

impl Node {
    pub(super) async fn start(stage: &Stage, options: ServerOptions) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = runtime.spawn(stage.node(options)).await.unwrap();
        Self { server: Some(server), runtime: Some(runtime), frozen: false }
    }

    pub(super) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub(super) fn app(&self) -> App {
        self.server().app.clone()
    }

    /// Runs something in the process.
    pub(super) fn run<T, F>(&self, work: F) -> impl Future<Output = T> + use<T, F>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let task = self.runtime.as_ref().unwrap().spawn(work);
        async move { task.await.unwrap() }
    }

    /// `kill -9`: whatever it was doing ends where it is.
    pub(super) async fn kill(mut self) {
        drop(self.server.take());
        if let Some(runtime) = self.runtime.take() {
            tokio::task::spawn_blocking(move || runtime.shutdown_timeout(Duration::from_secs(10)))
                .await
                .unwrap();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Only when a seed has failed.
        drop(self.server.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
