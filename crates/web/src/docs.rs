//! The pages for people and agents, generated from the OpenAPI document: the documentation, the welcome page,
//! `llms.txt`.
//!
//! No scripts and no external assets: a page is one HTML file with the stylesheet inside.

mod call;
mod curl;
mod events;
mod example;
mod html;
mod introduction;
mod literal;
mod llms;
mod navigation;
mod objects;
mod operation;
mod outbound;
mod own_reference;
mod page;
mod parts;
mod prose;
mod python;
mod reference;
mod samples;
mod schema;
mod shell;
mod stand_in;
mod tables;
#[cfg(test)]
mod tests;
mod typescript;
mod welcome;

pub use self::call::example_variable;
pub(crate) use self::{
    llms::llms,
    page::page,
    parts::{find as find_part, parts},
    shell::{ICON, ICON_PATH, content_security_policy},
    stand_in::StandIns,
    welcome::welcome,
};
