//! `config check` and `config show`, and the reading of the configuration that nearly every command begins with.

use std::process::ExitCode;

use crate::{
    cli::ConfigCommand,
    config::{Config, Sources, show},
    failure::{Failure, Result},
    output,
};

pub(super) fn run(command: &ConfigCommand, sources: &Sources) -> Result<ExitCode> {
    match command {
        ConfigCommand::Check => {
            load(sources)?;
            output::line("The configuration is fine.");
        }
        ConfigCommand::Show => output::text(&show(sources)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The configuration, or everything that is wrong with it.
pub(super) fn load(sources: &Sources) -> Result<Config> {
    Config::load(sources).map_err(|problems| Failure::configuration(&problems))
}
