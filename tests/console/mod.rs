//! The console without a browser: sessions, forms, roles, escaping, policies. What needs a browser is in `tests/browser`.

mod access;
mod mail;
mod pages;
mod passwords;
mod person;
mod telegram;
mod writing;
