//! The command line: which measurements, on which engines, for how long.

use std::{path::PathBuf, time::Duration};

use crate::{load::End, measured_store::Engine};

const USAGE: &str =
    "usage: bench [--quick] [--engine sqlite|postgres] [--only service|bare [--requests N]] [--rows TEXT]
             [--program FILE] [--recall-set FILE] [NAME…]

NAME is one of read, reads, write, start, growth, receive, emails, console, search, import, wait, send, relay, schedules,
keyless, recall, nodes; all of them when none is given.
  --quick           short rounds, for a first look; the figures are noisy
  --engine ENGINE   only this engine
  --only SIDE       in `read` and `reads`, loads one of the two sides alone, for a profiler to look at
  --rows TEXT       in `read`, `reads`, `receive`, `import`, `recall` and `relay`, only rows whose name contains the text
  --requests N      with --only, so many requests over one connection instead of half a minute over 32
  --program FILE    in those that start the program, the program to start (default: agent-mailbox beside this one)
  --recall-set FILE in `recall`, questions and passages as scripts/make-recall-set writes them";

/// A measurement by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measurement {
    Read,
    Reads,
    Write,
    Start,
    Growth,
    Receive,
    Emails,
    Console,
    Search,
    Import,
    Wait,
    Send,
    Relay,
    Schedules,
    Reviews,
    Keyless,
    Recall,
    Nodes,
}

impl Measurement {
    const ALL: [Self; 18] = [
        Self::Read,
        Self::Reads,
        Self::Write,
        Self::Start,
        Self::Growth,
        Self::Receive,
        Self::Emails,
        Self::Console,
        Self::Search,
        Self::Import,
        Self::Wait,
        Self::Send,
        Self::Relay,
        Self::Schedules,
        Self::Reviews,
        Self::Keyless,
        Self::Recall,
        Self::Nodes,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Reads => "reads",
            Self::Write => "write",
            Self::Start => "start",
            Self::Growth => "growth",
            Self::Receive => "receive",
            Self::Emails => "emails",
            Self::Console => "console",
            Self::Search => "search",
            Self::Import => "import",
            Self::Wait => "wait",
            Self::Send => "send",
            Self::Relay => "relay",
            Self::Schedules => "schedules",
            Self::Reviews => "reviews",
            Self::Keyless => "keyless",
            Self::Recall => "recall",
            Self::Nodes => "nodes",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Read => "a metered read against a bare handler with the same query",
            Self::Reads => "mail that is read, against home-made servers and bare handlers",
            Self::Write => "durable writes at 32 connections against one",
            Self::Start => "time until ready, and memory",
            Self::Growth => "store calls among 100,000 workspaces against 10",
            Self::Receive => "messages over SMTP against Postfix alone",
            Self::Emails => "lists and single reads in a large mailbox",
            Self::Console => "the list of conversations in the console",
            Self::Search => "full-text search",
            Self::Import => "an mbox file by the command",
            Self::Keyless => "a read with a fresh proof of a wallet against one with a key",
            Self::Nodes => "statements and connections of many nodes",
            Self::Recall => "recalling among 100,000 snippets, and how well",
            Self::Wait => "how soon a waiting call learns of its message",
            Self::Send => "a send to a mailbox of this server against a durable commit",
            Self::Relay => "messages through a relay",
            Self::Schedules => "many scheduled messages due at once",
            Self::Reviews => "how soon an approved message is at the relay",
        }
    }
}

/// One side of the comparison in `read` and `reads`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadSide {
    Service,
    Bare,
}

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) measurements: Vec<Measurement>,
    pub(crate) engines: Vec<Engine>,
    pub(crate) only: Option<ReadSide>,
    pub(crate) requests: Option<u64>,
    pub(crate) program: Option<PathBuf>,
    pub(crate) recall_set: Option<PathBuf>,
    rows: Option<String>,
    quick: bool,
}

impl Options {
    pub(crate) fn from_arguments(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            measurements: Vec::new(),
            engines: Engine::ALL.to_vec(),
            only: None,
            requests: None,
            program: None,
            recall_set: None,
            rows: None,
            quick: false,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| USAGE.to_owned());
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--engine" => options.engines = vec![engine(&value()?)?],
                "--only" => options.only = Some(side(&value()?)?),
                "--requests" => options.requests = Some(value()?.parse().map_err(|_| USAGE.to_owned())?),
                "--program" => options.program = Some(value()?.into()),
                "--rows" => options.rows = Some(value()?),
                "--recall-set" => options.recall_set = Some(value()?.into()),
                name => options.measurements.push(measurement(name)?),
            }
        }
        if options.measurements.is_empty() {
            options.measurements = Measurement::ALL.to_vec();
        }
        Ok(options)
    }

    /// Whether a row of a table is to be measured.
    pub(crate) fn wants(&self, row: &str) -> bool {
        self.rows.as_ref().is_none_or(|text| row.contains(text))
    }

    /// How often each side takes its turn.
    pub(crate) fn rounds(&self) -> usize {
        if self.quick { 3 } else { 9 }
    }

    /// How long a turn under load lasts.
    pub(crate) fn turn(&self) -> Duration {
        if self.quick { Duration::from_millis(700) } else { Duration::from_secs(3) }
    }

    /// Both, for a load without an opponent.
    pub(crate) fn turns(&self) -> (usize, End) {
        (self.rounds(), End::After(self.turn()))
    }

    /// Workspaces in the large store of `growth`.
    pub(crate) fn many_workspaces(&self) -> usize {
        if self.quick { 10_000 } else { 100_000 }
    }

    /// Messages in the mailbox that is listed and searched.
    pub(crate) fn many_messages(&self) -> usize {
        if self.quick { 10_000 } else { 100_000 }
    }

    /// Messages in the largest mailbox.
    pub(crate) fn largest_mailbox_messages(&self) -> usize {
        if self.quick { 100_000 } else { 1_000_000 }
    }

    /// Messages that clients wait for.
    pub(crate) fn waited_messages(&self) -> usize {
        if self.quick { 150 } else { 500 }
    }

    /// Messages that are due in the same second.
    pub(crate) fn schedules(&self) -> u64 {
        if self.quick { 1_000 } else { 10_000 }
    }

    /// Snippets that recall searches.
    pub(crate) fn snippets(&self) -> usize {
        if self.quick { 10_000 } else { 100_000 }
    }

    /// Recalls that read an index first.
    pub(crate) fn cold_recalls(&self) -> usize {
        if self.quick { 20 } else { 100 }
    }

    /// Messages whose cost on the server is counted.
    pub(crate) fn costed_messages(&self) -> usize {
        if self.quick { 500 } else { 2_000 }
    }

    /// Messages of one imported file.
    pub(crate) fn imported_messages(&self) -> usize {
        if self.quick { 3_000 } else { 10_000 }
    }
}

fn measurement(name: &str) -> Result<Measurement, String> {
    Measurement::ALL.into_iter().find(|known| known.name() == name).ok_or_else(|| USAGE.to_owned())
}

fn engine(name: &str) -> Result<Engine, String> {
    match name {
        "sqlite" => Ok(Engine::Sqlite),
        "postgres" => Ok(Engine::Postgres),
        _ => Err(USAGE.to_owned()),
    }
}

fn side(name: &str) -> Result<ReadSide, String> {
    match name {
        "service" => Ok(ReadSide::Service),
        "bare" => Ok(ReadSide::Bare),
        _ => Err(USAGE.to_owned()),
    }
}
