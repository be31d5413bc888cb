//! `config check` and `config show`.

use std::process::ExitCode;

use super::load;
use crate::{
    cli::ConfigCommand,
    config::{Sources, show},
    failure::Result,
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
