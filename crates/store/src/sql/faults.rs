//! For tests only: makes the n-th statement of a transaction fail or panic, to prove that nothing of it is left behind, or
//! the whole process as good as dead at its n-th commit, to prove that whatever was told or stored before fits together.

pub(super) mod crashes;
pub(super) mod statements;

use super::db::Db;

pub use self::{
    crashes::Moment,
    statements::{fail_statement, panic_in_statement, stop_failing},
};

impl Db {
    /// Lets the process die at its n-th commit from now on: from then on nothing reaches the store. Counted from one.
    pub fn crash_at(&self, commits: u32, moment: Moment) {
        crashes::crash_at(self.address(), commits, moment);
    }

    /// Takes the crash back, unless it has happened, and tells whether it has.
    pub fn has_crashed(&self) -> bool {
        crashes::has_crashed(self.address())
    }

    /// Whether the process has died.
    pub fn is_dead(&self) -> bool {
        crashes::is_dead(self.address())
    }
}
