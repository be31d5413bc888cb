//! Limits of the console: pages per minute, rows per page, and how long a send can be undone.

/// Limits of the console: pages per minute, rows per page, and how long a send can be undone.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleLimits {
    /// Pages per minute for one client address.
    pub pages_per_minute: u64,
    /// Conversations, drafts, scheduled messages or workspaces per page: 1 to 100.
    pub conversations_per_page: i64,
    /// Rows per page of other lists: 1 to 100.
    pub rows_per_page: i64,
    /// Rows of lists without a next page, newest first.
    pub newest_shown: i64,
    /// Seconds in which a send can be undone, since it leaves only then; 0 to send at once.
    pub undo_send_seconds: i64,
}

impl Default for ConsoleLimits {
    fn default() -> Self {
        // A person reads far fewer pages.
        Self {
            pages_per_minute: 1200,
            conversations_per_page: 50,
            rows_per_page: 25,
            newest_shown: 100,
            undo_send_seconds: 10,
        }
    }
}
