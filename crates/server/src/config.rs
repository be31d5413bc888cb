//! The configuration: defaults, then a TOML file, then the environment, then the command line.
//!
//! The defaults are `config.default.toml` at the root of the repository, compiled in; keys that are not in it do
//! not exist. All mistakes are reported together, each with its key and its source.

mod check;
mod layers;
mod load;
mod locations;
mod options;
mod problem;
mod sections;
mod show;
mod suggest;
#[cfg(test)]
mod tests;

pub use self::{
    layers::Sources,
    options::Config,
    problem::Problem,
    sections::{
        Embeddings, EmbeddingsProvider, Facilitator, KeySource, Log, Payments, Telegram, Telemetry, TlsFiles,
    },
    show::{show, show_json},
};
