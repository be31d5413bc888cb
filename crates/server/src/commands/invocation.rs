//! How the program was called, so that `serve` can print commands that work when pasted.

use std::path::PathBuf;

/// How the program was called, so that it can print commands that work when pasted.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The file given with `--config`.
    pub config: Option<PathBuf>,
    /// The folder given with `--data-dir`.
    pub data_dir: Option<PathBuf>,
}
