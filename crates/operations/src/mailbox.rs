//! Mailboxes and what belongs to them: folders, labels, domains.

pub mod domains;
pub mod folders;
pub mod labels;
pub mod mailboxes;
