//! Loads the configuration: all layers, then their checks.

use super::{
    check::Reader,
    layers::{Layers, Sources},
    options::Config,
    problem::Problem,
};

impl Config {
    /// Loads the configuration, or returns all its mistakes.
    pub fn load(sources: &Sources) -> Result<Self, Vec<Problem>> {
        let layers = Layers::load(sources);
        let mut reader = Reader::new(&layers);
        let config = reader.config(sources);
        let problems = reader.into_problems();
        if problems.is_empty() { config.ok_or_else(Vec::new) } else { Err(problems) }
    }
}
