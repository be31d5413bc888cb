//! The console without a browser: sessions, forms, roles, escaping, policies. What needs a browser is in `tests/browser`.

mod access;
mod agent;
mod audit;
mod forms;
mod knowledge;
mod mail;
mod nodes;
mod pages;
mod passwords;
mod person;
mod replying;
mod reviews;
mod suppressions;
mod telegram;
mod triage;
mod writing;
