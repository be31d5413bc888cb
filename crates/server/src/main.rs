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
mod port_owner;
mod serve;
mod shares;
mod smtp;
#[cfg(feature = "opentelemetry")]
mod telemetry;

use std::process::ExitCode;

/// Every message and every call makes many small allocations on several threads; this allocator is the fastest for
/// them. Without large pages, which would take more memory than an idle server needs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    // Files created here (databases, keys, backups) are for their owner alone, also in a shared folder.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let done = commands::run(cli).and_then(|code| output::check().map(|()| code));
    done.unwrap_or_else(|failure| {
        output::failure(&failure);
        ExitCode::FAILURE
    })
}
