//! `completions` and `man`: texts made from the command line itself.

use std::{
    fmt::Write as _,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap_complete::Shell;
use serde_json::json;

use crate::{
    cli,
    failure::{Failure, Result},
    output,
};

/// Prints the completion script of a shell.
pub(super) fn completions(shell: Shell) -> ExitCode {
    // Into memory first: the generator panics when a pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "agent-mailbox", &mut script);
    output::text(&String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}

/// Prints the manual page, or writes those of all commands to a folder.
pub(super) fn manual(dir: Option<&Path>) -> Result<ExitCode> {
    let Some(dir) = dir else {
        output::text(&String::from_utf8_lossy(&page(&cli::command())?));
        return Ok(ExitCode::SUCCESS);
    };
    let failed = |error: std::io::Error| {
        Failure::new(format!("Cannot write manual pages to {}: {error}", dir.display()))
            .with_fix("Choose a folder that you may write to, such as ~/.local/share/man/man1.")
    };
    fs::create_dir_all(dir).map_err(failed)?;
    let mut written = Vec::new();
    let mut program = cli::command();
    program.build();
    for command in with_subcommands(&program) {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        let path = dir.join(format!("{name}.1"));
        fs::write(&path, page(command)?).map_err(failed)?;
        // Manuals are for everybody, unlike what this program writes otherwise.
        fs::set_permissions(&path, Permissions::from_mode(0o644)).map_err(failed)?;
        written.push(path);
    }
    output::result(&json!({ "dir": dir, "files": written }), || summary(&written, dir))?;
    Ok(ExitCode::SUCCESS)
}

fn summary(written: &[PathBuf], dir: &Path) -> String {
    format!("Wrote {} to {}.", output::plural(written.len() as u64, "manual page"), dir.display())
}

fn page(command: &clap::Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(command.clone()).manual("Agent Mailbox").source("Agent Mailbox");
    page.render(&mut text).map_err(|error| Failure::new(format!("Cannot make the manual page: {error}")))?;
    Ok(ascii(&String::from_utf8_lossy(&text)).into_bytes())
}

/// Characters beyond ASCII as roff writes them, whatever encoding the reader's `man` expects.
fn ascii(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut page, letter| {
        if letter.is_ascii() {
            page.push(letter);
        } else {
            let _ = write!(page, "\\[u{:04X}]", u32::from(letter));
        }
        page
    })
}

/// A command and all below it, each with its whole name: `agent-mailbox-admin-key`.
fn with_subcommands(command: &clap::Command) -> Vec<&clap::Command> {
    let inner = command.get_subcommands().filter(|inner| inner.get_name() != "help");
    std::iter::once(command).chain(inner.flat_map(with_subcommands)).collect()
}
