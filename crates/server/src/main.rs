//! The binary: configuration, adapters, listeners, workers, the command line.
//!
//! What the service does is in `operations`, its HTTP interface in `web`; this crate assembles them.

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

/// Every message and every call makes many small allocations on several threads; this allocator is the fastest for
/// them. Without large pages, which would take more memory than an idle server needs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    // Files created here (databases, keys, backups) are for their owner alone, also in a shared folder.
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
