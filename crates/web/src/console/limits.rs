//! Limits of the console: pages per minute and rows per page.

/// Limits of the console: pages per minute and rows per page.
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
}

impl Default for ConsoleLimits {
    fn default() -> Self {
        // A person reads far fewer pages.
        Self { pages_per_minute: 1200, conversations_per_page: 50, rows_per_page: 25, newest_shown: 100 }
    }
}
