//! For tests only: makes the n-th statement of a transaction fail or panic, to prove that it leaves nothing behind,
//! or simulates a crash at the n-th commit, to prove that acknowledged and stored data are consistent.

pub(super) mod crashes;
pub(super) mod statements;

use super::db::Db;

pub use self::{
    crashes::Moment,
    statements::{fail_statement, panic_in_statement, stop_failing},
};

impl Db {
    /// Simulates a crash at the n-th commit, counted from one: after it nothing reaches the store.
    pub fn crash_at(&self, commits: u32, moment: Moment) {
        crashes::crash_at(self.address(), commits, moment);
    }

    /// Cancels the crash, unless it has happened, and returns whether it has.
    pub fn has_crashed(&self) -> bool {
        crashes::has_crashed(self.address())
    }

    /// Whether the process has crashed.
    pub fn is_dead(&self) -> bool {
        crashes::is_dead(self.address())
    }
}
