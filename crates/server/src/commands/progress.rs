//! A progress line for long commands, on terminals only.

use std::{
    io::{IsTerminal, Write},
    time::{Duration, Instant},
};

/// How often the line is redrawn.
const REFRESH_INTERVAL: Duration = Duration::from_millis(200);

/// The progress of a command over messages.
pub(super) struct Progress {
    total: u64,
    done: u64,
    messages: u64,
    started: Instant,
    shown: Option<Instant>,
    on_terminal: bool,
}

impl Progress {
    /// Starts at zero, of this total.
    pub(super) fn new(total: u64) -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        Self { total, done: 0, messages: 0, started: Instant::now(), shown: None, on_terminal }
    }

    /// Reports how much of the total is done, and how many messages that is.
    pub(super) fn reach(&mut self, done: u64, messages: u64) {
        (self.done, self.messages) = (done, messages);
        if self.shown.is_none_or(|shown| shown.elapsed() > REFRESH_INTERVAL) {
            self.show();
        }
    }

    /// Ends the line.
    pub(super) fn end(&mut self) {
        self.show();
        if self.on_terminal {
            let _ = writeln!(std::io::stderr());
        }
    }

    fn show(&mut self) {
        self.shown = Some(Instant::now());
        if !self.on_terminal {
            return;
        }
        let percent = (self.done * 100).checked_div(self.total).unwrap_or(100).min(100);
        let filled = usize::try_from(percent / 5).unwrap_or_default();
        let seconds = self.started.elapsed().as_secs().max(1);
        let bar = format!("{}{}", "#".repeat(filled), "-".repeat(20 - filled));
        let _ = write!(
            std::io::stderr(),
            "\r[{bar}] {percent:>3} %  {} messages, {} a second ",
            self.messages,
            self.messages / seconds
        );
        let _ = std::io::stderr().flush();
    }
}
