//! The binary: configuration, the real outside world, listeners, workers, the command line.
//!
//! What the service does is in `operations`, how it looks over HTTP in `web`; here everything is put together.

mod backup;
mod cli;
mod commands;
mod config;
mod failure;
mod faults;
mod listener;
mod logging;
mod metrics;
mod open;
mod output;
mod serve;
mod shares;
mod smtp;
#[cfg(feature = "opentelemetry")]
mod telemetry;

use std::process::ExitCode;

use clap::Parser;

/// Many small pieces come and go with every message and every call, on several threads; this one hands them out with the
/// least work. Without large pages, which would hold more memory than an idle server needs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    // Whatever is made here (databases, keys, backups) is for its owner alone, also in a folder that others may enter.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let json = matches!(&cli.command, Some(cli::Command::Admin(admin)) if admin.json());
    match commands::run(cli) {
        Ok(code) => code,
        Err(failure) if json => {
            output::line(failure.to_json());
            ExitCode::FAILURE
        }
        Err(failure) => {
            output::error(failure);
            ExitCode::FAILURE
        }
    }
}
