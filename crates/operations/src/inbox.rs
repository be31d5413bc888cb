//! Mail that comes in, and reading it.

pub mod attachments;
pub mod email_context;
pub mod emails;
pub(crate) mod extract;
pub mod inbound;
pub mod mail_log;
pub mod postmaster;
pub mod scanning;
pub mod test_message;
pub mod threads;
