//! How much of the console one may see at a time.

/// How much of the console one may see at a time.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleLimits {
    /// Pages that one client address may ask for in a minute.
    pub pages_per_minute: u64,
    /// Conversations, drafts, scheduled messages or workspaces that a page lists: 1 to 100.
    pub conversations_per_page: i64,
    /// Rows of other lists that a page shows: 1 to 100.
    pub rows_per_page: i64,
    /// How many of the newest are shown where there is no next page.
    pub newest_shown: i64,
}

impl Default for ConsoleLimits {
    fn default() -> Self {
        // A person reads far fewer pages.
        Self { pages_per_minute: 1200, conversations_per_page: 50, rows_per_page: 25, newest_shown: 100 }
    }
}
