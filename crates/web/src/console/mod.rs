//! The web console: server-rendered pages, and their session as JSON.
//!
//! Pages call the same operations as the API, under the same roles and plans, but unmetered (`Visit::call`).
//! Nothing is loaded from other hosts and no inline script runs; `page::POLICY` enforces it.

mod agent;
mod amounts;
mod approval;
mod assets;
mod attachment_reminder;
mod audit;
mod auth;
mod chart;
mod compose;
mod compose_start;
mod compose_view;
mod confirm;
mod domains;
mod draft_form;
mod events;
mod fields;
mod flash;
mod form_state;
mod forward;
mod integrations;
mod invites;
mod key_access;
mod key_edit;
mod keys;
mod knowledge;
mod limits;
mod links;
mod live;
mod mail;
mod mail_actions;
mod mailboxes;
mod members;
mod message_badges;
mod message_form;
mod message_html;
mod message_part;
mod message_source;
mod operator;
mod overview;
mod page;
mod reader;
mod rewrite;
mod routes;
mod scheduled;
mod session_api;
mod settings;
mod shell;
mod sidebar;
mod snippets;
mod telegram;
mod test_message;
mod text;
mod time;
mod triage;
mod triage_form;
mod ui;
mod undo;
mod undo_send;
mod usage;
mod visit;
mod webhooks;

pub use self::limits::ConsoleLimits;
pub(crate) use self::routes::routes;
