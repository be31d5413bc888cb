//! The console without a browser: sessions, forms, roles, escaping, policies. What needs a browser is in `tests/browser`.

mod access;
mod agent;
mod knowledge;
mod mail;
mod pages;
mod passwords;
mod person;
mod replying;
mod telegram;
mod triage;
mod writing;
