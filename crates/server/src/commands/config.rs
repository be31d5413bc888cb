//! `config check` and `config show`, and loading the configuration, with which nearly every command starts.

use std::process::ExitCode;

use serde_json::json;

use crate::{
    cli::ConfigCommand,
    config::{Config, Sources, show, show_json},
    failure::{Failure, Result},
    output,
};

pub(super) fn run(command: &ConfigCommand, sources: &Sources) -> Result<ExitCode> {
    match command {
        ConfigCommand::Check => {
            load(sources)?;
            output::result(&json!({ "ok": true }), || "The configuration is fine.".to_owned())?;
        }
        ConfigCommand::Show if output::is_json() => output::json(&show_json(sources))?,
        ConfigCommand::Show => output::text(&show(sources)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The configuration, or all its mistakes.
pub(super) fn load(sources: &Sources) -> Result<Config> {
    Config::load(sources).map_err(|problems| Failure::configuration(&problems))
}
