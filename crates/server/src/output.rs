//! Output of commands: lines for people or one JSON document for programs, with colours on terminals only.
//!
//! A closed pipe (`agent-mailbox config show | head -1`) is no failure; output that cannot be written for another
//! reason, such as a full disk, is.

use std::{
    fmt::Display,
    io::{self, ErrorKind, IsTerminal, Write},
    sync::OnceLock,
};

use crate::failure::{Failure, Result};

/// How commands write, chosen once at the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// JSON instead of lines.
    pub json: bool,
    /// When to use colours.
    pub color: ColorWhen,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorWhen {
    /// On terminals, unless `NO_COLOR` is set; everywhere if `CLICOLOR_FORCE` is
    #[default]
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

impl ColorWhen {
    /// Whether a stream gets colours.
    fn decide(self, is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
        let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if set("NO_COLOR") => false,
            Self::Auto if variable("CLICOLOR_FORCE").is_some_and(|value| !matches!(&*value, "" | "0")) => {
                true
            }
            Self::Auto => {
                is_terminal && variable("TERM").is_none_or(|name| name != "dumb") && {
                    variable("CLICOLOR").is_none_or(|value| value != "0")
                }
            }
        }
    }
}

/// A colour of a word.
#[derive(Clone, Copy, Debug)]
pub enum Color {
    Red,
    Green,
    Yellow,
    Bold,
}

static STYLE: OnceLock<Style> = OnceLock::new();
/// Why output was lost, if it was.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Sets how commands write. The first call counts.
pub fn set_style(style: Style) {
    let _ = STYLE.set(style);
}

fn style() -> Style {
    STYLE.get().copied().unwrap_or_default()
}

/// Whether commands print JSON.
pub fn is_json() -> bool {
    style().json
}

/// Whether standard error gets colours.
pub fn colored_errors() -> bool {
    colored(&io::stderr())
}

fn colored(stream: &impl IsTerminal) -> bool {
    style().color.decide(stream.is_terminal(), |name| std::env::var(name).ok())
}

/// A word for standard output, in a colour where colours are wanted.
pub fn paint(word: &str, color: Color) -> String {
    if colored(&io::stdout()) { painted(word, color) } else { word.to_owned() }
}

fn painted(word: &str, color: Color) -> String {
    let code = match color {
        Color::Red => "31",
        Color::Green => "32",
        Color::Yellow => "33",
        Color::Bold => "1",
    };
    format!("\x1b[{code}m{word}\x1b[0m")
}

/// Prints what a command did: a value as JSON, or a text for people.
pub fn result(value: &impl serde::Serialize, people: impl FnOnce() -> String) -> Result<()> {
    if is_json() {
        return json(value);
    }
    line(people());
    Ok(())
}

/// Writes a line to standard output.
pub fn line(line: impl Display) {
    text(&format!("{line}\n"));
}

/// Writes a value to standard output as a line of JSON.
pub fn json(value: &impl serde::Serialize) -> Result<()> {
    line(serde_json::to_string(value).map_err(|error| Failure::new(error.to_string()))?);
    Ok(())
}

/// Writes a text to standard output unchanged.
pub fn text(text: &str) {
    let mut stdout = io::stdout();
    note(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
}

/// Writes a line to standard error. There is nowhere to say that it failed.
pub fn error(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints why a command failed.
pub fn failure(failure: &Failure) {
    if is_json() {
        line(failure.to_json());
        return;
    }
    let text = failure.to_string();
    match text.split_once('\n') {
        _ if !colored_errors() => error(text),
        Some((first, rest)) => error(format!("{}\n{rest}", painted(first, Color::Red))),
        None => error(painted(&text, Color::Red)),
    }
}

fn note(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _ = LOST.set(error);
    }
}

/// Fails if output was lost, other than by a reader that closed the pipe.
pub fn check() -> Result<()> {
    match LOST.get() {
        None => Ok(()),
        Some(error) => Err(Failure::new(format!("Cannot write to standard output: {error}"))
            .with_fix("Free some space, or send the output elsewhere; the command itself has run.")),
    }
}

/// A count with its noun.
pub fn plural(count: u64, noun: &str) -> String {
    let ending = match noun {
        "mailbox" if count != 1 => "es",
        _ if count == 1 => "",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

/// Bytes in the most readable unit.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "kB", "MB", "GB", "TB"];
    let mut unit = 0;
    let mut tenths = u128::from(count) * 10;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} bytes")
    } else {
        format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (count, shown) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (123_456, "123.4 kB"),
            (3_000_000_000, "3.0 GB"),
            (u64::MAX, "18446744.0 TB"),
        ] {
            assert_eq!(bytes(count), shown);
        }
    }

    #[test]
    fn colours_are_for_terminals_unless_told_otherwise() {
        let decide = |when: ColorWhen, terminal: bool, variables: &[(&str, &str)]| {
            when.decide(terminal, |name| {
                variables.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let auto = ColorWhen::Auto;
        assert!(decide(auto, true, &[]) && !decide(auto, false, &[]));
        assert!(!decide(auto, true, &[("NO_COLOR", "1")]) && decide(auto, true, &[("NO_COLOR", "")]));
        assert!(decide(auto, false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!decide(auto, false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!decide(auto, true, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]));
        assert!(!decide(auto, true, &[("TERM", "dumb")]) && !decide(auto, true, &[("CLICOLOR", "0")]));
        assert!(decide(ColorWhen::Always, false, &[("NO_COLOR", "1")]));
        assert!(!decide(ColorWhen::Never, true, &[("CLICOLOR_FORCE", "1")]));
    }
}
