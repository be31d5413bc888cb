//! One file per group of commands. Each reports what it did, or returns why it failed.

mod admin;
mod audit;
mod backup;
mod config;
mod doctor;
mod documents;
mod import;
pub mod invocation;
mod mcp;
mod nodes;
mod probe;
mod progress;
mod runtime;
mod search;
mod system_user;
mod trace;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

pub use self::invocation::Invocation;
use self::{config::load, runtime::in_runtime};
use crate::{
    cli::{Cli, Command, Serve},
    config::Sources,
    failure::Result,
    logging, output, serve,
};

/// Runs the command.
pub fn run(cli: Cli) -> Result<ExitCode> {
    let invocation = Invocation { config: cli.config.clone(), data_dir: cli.data_dir.clone() };
    let sources = Sources {
        file: cli.config,
        working_dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
        environment: environment(),
        data_dir: cli.data_dir,
    };
    match cli.command.unwrap_or(Command::Serve(Serve::default())) {
        Command::Serve(options) => {
            let config = load(&sources)?;
            let _exporter = logging::start(config.log, config.telemetry.as_ref())?;
            in_runtime(serve::run(config, options, invocation))
        }
        Command::Admin(command) => quietly(|| in_runtime(admin::run(load(&sources)?, command))),
        Command::Doctor => quietly(|| doctor::run(&sources)),
        Command::Config(command) => config::run(&command, &sources),
        Command::Openapi { agent } => {
            output::text(&if agent { web::agent_openapi_json() } else { web::openapi_json() });
            Ok(ExitCode::SUCCESS)
        }
        Command::Completions { shell } => Ok(documents::completions(shell)),
        Command::Man { dir } => documents::manual(dir.as_deref()),
        Command::Backup { dir } => quietly(|| in_runtime(backup::save(load(&sources)?, absolute(&dir)))),
        Command::Import { mailbox, path } => {
            quietly(|| in_runtime(import::run(load(&sources)?, mailbox, absolute(&path))))
        }
        Command::Mcp(options) => quietly(|| in_runtime(mcp::run(options))),
        Command::Reindex => quietly(|| in_runtime(search::run(load(&sources)?))),
        Command::Restore { dir } => quietly(|| in_runtime(backup::restore(load(&sources)?, absolute(&dir)))),
    }
}

fn environment() -> Vec<(String, String)> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn quietly(command: impl FnOnce() -> Result<ExitCode>) -> Result<ExitCode> {
    logging::start_quietly();
    command()
}
