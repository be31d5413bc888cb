//! One file for each group of commands. Each says what it did, or returns why not.

mod admin;
mod backup;
mod config;
mod doctor;
mod import;
mod mcp;
mod probe;
mod progress;
mod search;
mod trace;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::CommandFactory;

use crate::{
    cli::{Cli, Command, Serve},
    config::{Config, Sources},
    failure::{Failure, Result},
    logging, output, serve,
};

/// Does what the command line asks for.
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
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "agent-mailbox", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
        Command::Backup { dir } => quietly(|| in_runtime(backup::save(load(&sources)?, absolute(&dir)))),
        Command::Import { mailbox, path } => {
            quietly(|| in_runtime(import::run(load(&sources)?, mailbox, absolute(&path))))
        }
        Command::Mcp(options) => quietly(|| in_runtime(mcp::run(options))),
        Command::Reindex => quietly(|| in_runtime(search::run(load(&sources)?))),
        Command::Restore { dir } => quietly(|| in_runtime(backup::restore(load(&sources)?, absolute(&dir)))),
    }
}

/// How the program was called, so that it can name commands that work when pasted.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The file given with `--config`.
    pub config: Option<PathBuf>,
    /// The folder given with `--data-dir`.
    pub data_dir: Option<PathBuf>,
}

fn load(sources: &Sources) -> Result<Config> {
    Config::load(sources).map_err(|problems| Failure::configuration(&problems))
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

/// Runs a command on a runtime of its own, which does not wait for what is left in the background at the end.
fn in_runtime<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // Blocking work is files and password hashes: more at once would only thrash.
        .max_blocking_threads(64)
        .thread_keep_alive(std::time::Duration::from_secs(2))
        .build()
        .map_err(|error| Failure::new(format!("Cannot start: {error}")))?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_background();
    outcome
}
