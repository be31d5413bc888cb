//! Captures the service's log lines.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use tracing_subscriber::util::SubscriberInitExt;

/// Captures log lines of the test's thread, which runs the whole service in a single-threaded test.
pub struct Logs {
    lines: Lines,
    _until_dropped: tracing::subscriber::DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Logs {
    /// Starts capturing.
    pub fn catch() -> Self {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone())
            .finish();
        Self { lines, _until_dropped: subscriber.set_default() }
    }

    /// The lines so far.
    pub fn text(&self) -> String {
        let lines = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&lines).into_owned()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
