//! Measures what the service promises about speed, memory and growth.
//!
//! Every figure is a ratio to a baseline that is measured in the same run, in turns with it: machines differ and
//! are noisy, ratios less so. `docs/benchmarks.md` says what each measurement means.

#![expect(clippy::expect_used, reason = "a measurement that cannot be set up has nothing to go on with")]

mod arrivals;
mod bare;
mod bare_postgres;
mod console;
mod emails;
mod fill;
mod flush;
mod growth;
mod keyless;
mod load;
mod machine;
mod measured_store;
mod messages;
mod nodes;
mod options;
mod postfix;
mod postgres_cost;
mod program;
mod read;
mod reads;
mod recall;
mod receive;
mod relay;
mod report;
mod reviews;
mod schedules;
mod search;
mod send;
mod service;
mod sink;
mod start;
mod stats;
mod turns;
mod wait;
mod wire;
mod write;

use std::process::ExitCode;

use self::{
    options::{Measurement, Options},
    report::Figure,
};

/// The server's own allocator, so that what is served in this process costs the same.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let options = match Options::from_arguments(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(usage) => {
            eprintln!("{usage}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Runtime::new().expect("the runtime starts");
    let passed = runtime.block_on(run(&options));
    // Threads of a closing store need not delay the exit.
    runtime.shutdown_background();
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the requested measurements, and returns whether all of them met their targets.
async fn run(options: &Options) -> bool {
    let mut all: Vec<Figure> = Vec::new();
    for measurement in &options.measurements {
        eprintln!("== {}: {}", measurement.name(), measurement.title());
        let mut figures = match measurement {
            Measurement::Read => read::measure(options).await,
            Measurement::Reads => reads::measure(options).await,
            Measurement::Write => write::measure(options).await,
            Measurement::Start => start::measure(options).await,
            Measurement::Growth => growth::measure(options).await,
            Measurement::Receive => receive::measure(options).await,
            Measurement::Emails => emails::measure(options).await,
            Measurement::Console => console::measure(options).await,
            Measurement::Search => search::measure(options).await,
            Measurement::Import => search::measure_import(options).await,
            Measurement::Recall => recall::measure(options).await,
            Measurement::Keyless => keyless::measure(options).await,
            Measurement::Wait => wait::measure(options).await,
            Measurement::Send => send::measure(options).await,
            Measurement::Relay => relay::measure(options).await,
            Measurement::Schedules => schedules::measure(options).await,
            Measurement::Reviews => reviews::measure(options).await,
            Measurement::Nodes => nodes::measure(options).await,
        };
        figures.extend(match measurement {
            Measurement::Import => postgres_cost::measure_import(options).await,
            Measurement::Receive => postgres_cost::measure_receive(options).await,
            _ => Vec::new(),
        });
        report::save(*measurement, &figures);
        all.extend(figures);
    }
    println!("{}", report::table(&all));
    all.iter().all(Figure::passed)
}
