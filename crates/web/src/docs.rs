//! The pages for people and agents, generated from the OpenAPI document: the documentation, the welcome page,
//! `llms.txt`.
//!
//! No scripts and no external assets: a page is one HTML file with the stylesheet inside.

mod curl;
mod example;
mod html;
mod introduction;
mod llms;
mod navigation;
mod operation;
mod outbound;
mod own_reference;
mod page;
mod reference;
mod schema;
mod shell;
mod stand_in;
mod tables;
#[cfg(test)]
mod tests;
mod welcome;

pub(crate) use self::{
    llms::llms, page::page, shell::content_security_policy, stand_in::StandIns, welcome::welcome,
};
