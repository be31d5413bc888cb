//! The ways to run a transaction: alone or in one commit with others, to write or only to read.

/// How a transaction is run.
#[derive(Clone, Copy)]
pub(super) enum Mode<'a> {
    Write,
    /// In one commit with others of the same key.
    SharedWrite(&'a str),
    Read,
    /// All statements see the same state.
    Snapshot,
}

impl Mode<'_> {
    /// What it is called in the metrics.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Write | Self::SharedWrite(_) => "write",
            Self::Read => "read",
            Self::Snapshot => "snapshot",
        }
    }
}
