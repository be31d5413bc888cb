//! A store and a clock for nodes that are started and stopped.

use std::sync::Arc;

use crate::{
    clock::Clock, engine::Engine, options::ServerOptions, server::Server, template, test_store::TestStore,
};

/// A store and a clock, with any number of nodes or none.
pub struct Stage {
    store: Arc<TestStore>,
    /// The clock of all nodes.
    pub clock: Clock,
}

impl Stage {
    /// An empty store.
    pub async fn new(engine: Engine) -> Self {
        Self { store: Arc::new(template::new_store(engine).await), clock: Clock::start() }
    }

    /// A copy, with a clock of its own. The original must have no nodes.
    pub async fn copy(&self) -> Self {
        Self { store: Arc::new(self.store.copy().await), clock: Clock::start() }
    }

    /// Starts another node, on the current runtime.
    pub fn node(&self, options: ServerOptions) -> impl Future<Output = Server> + Send + 'static {
        Server::open(self.store.clone(), self.clock.clone(), options)
    }

    /// The folder that the nodes share.
    pub fn folder(&self) -> &std::path::Path {
        self.store.folder.path()
    }
}
