//! The command line: its names and options, which scripts rely on.

mod admin;
mod help;

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
    process::ExitCode,
};

use clap::{
    Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, error::ErrorKind,
};
use clap_complete::Shell;

pub use self::admin::{Account, Admin, Dkim, Key, Payments, Payout, Workspace};
use crate::{
    failure::Failure,
    output::{self, ColorWhen, Style},
};

/// The heading of options that every command takes.
const GLOBAL_OPTIONS: &str = "Global options";

/// A mail service for scripts and AI agents.
#[derive(Debug, Parser)]
#[command(name = "agent-mailbox", version, after_help = help::PROGRAM)]
pub struct Cli {
    /// Read this configuration file [default: agent-mailbox.toml in the working directory, if it exists]
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL_OPTIONS)]
    pub config: Option<PathBuf>,
    /// Use this data folder instead of the configured one [default: ./data]
    #[arg(long, global = true, value_name = "DIR", help_heading = GLOBAL_OPTIONS)]
    pub data_dir: Option<PathBuf>,
    /// Print JSON, errors included
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS)]
    pub json: bool,
    /// When to use colors: auto (on terminals), always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        help_heading = GLOBAL_OPTIONS
    )]
    pub color: ColorWhen,
    /// The command; `serve` if left out.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server (the default command)
    #[command(after_help = help::SERVE)]
    Serve(Serve),
    /// Check everything the server needs and report problems
    #[command(after_help = help::DOCTOR)]
    Doctor,
    /// Check or show the configuration
    #[command(subcommand, after_help = help::CONFIG)]
    Config(ConfigCommand),
    /// Manage accounts, API keys, workspaces and payouts, and trace messages
    #[command(subcommand, after_help = help::ADMIN)]
    Admin(Admin),
    /// Back up everything except the master key to a folder
    #[command(after_help = help::BACKUP)]
    Backup {
        /// The folder; it must be empty or not exist yet
        dir: PathBuf,
    },
    /// Restore a backup into an empty store
    #[command(after_help = help::RESTORE)]
    Restore {
        /// The folder with the backup
        dir: PathBuf,
    },
    /// Import an mbox file, a message or a folder of messages into a mailbox
    #[command(after_help = help::IMPORT)]
    Import {
        /// The mailbox, by its address or id
        mailbox: String,
        /// An mbox file, a message (.eml), or a folder of messages such as a Maildir
        path: PathBuf,
    },
    /// Rebuild the search index from the stored messages
    #[command(after_help = help::REINDEX)]
    Reindex,
    /// Connect an MCP client to a running server over standard input and output
    #[command(after_help = help::MCP)]
    Mcp(Mcp),
    /// Print the OpenAPI document
    #[command(after_help = help::OPENAPI)]
    Openapi {
        /// Print the document of the keyless API instead
        #[arg(long)]
        agent: bool,
    },
    /// Print a completion script for a shell
    #[command(after_help = help::COMPLETIONS)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all commands to a folder
    #[command(after_help = help::MAN)]
    Man {
        /// Write one page per command to this folder
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// Options of `mcp`.
#[derive(Debug, Args)]
pub struct Mcp {
    /// The server's URL
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// Which tools the client gets: assistant, agent-inbox or full [default: assistant]
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Read the API key from this file instead of the variable `AGENT_MAILBOX_API_KEY`
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

/// Options of `serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// The roles of this process, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [ServeRole::Api, ServeRole::Smtp, ServeRole::Worker])]
    pub roles: Vec<ServeRole>,
}

impl Default for Serve {
    fn default() -> Self {
        Self { roles: vec![ServeRole::Api, ServeRole::Smtp, ServeRole::Worker] }
    }
}

/// What a process can do for the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ServeRole {
    /// Answer HTTP requests: API, console and MCP
    Api,
    /// Receive mail by SMTP and LMTP
    Smtp,
    /// Run background jobs: sending, webhooks, triage, cleanup
    Worker,
}

/// What can be done with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the configuration and list all problems
    Check,
    /// Print every option with its current value and where it is set, without secrets
    Show,
}

/// The whole command line, as help, completions and manual pages show it.
pub fn command() -> clap::Command {
    help::with_groups(Cli::command())
}

/// Reads the command line. `Err` is the exit code when there is nothing to run: help was asked for, or something is
/// wrong.
pub fn parse() -> Result<Cli, ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let matches = command().color(help_colors(&arguments)).try_get_matches_from(&arguments);
    let parsed = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    let refused = match parsed {
        Ok(cli) => {
            output::set_style(Style { json: cli.json, color: cli.color });
            return Ok(cli);
        }
        Err(refused) => refused,
    };
    if refused.use_stderr() && arguments.iter().any(|argument| argument == "--json") {
        output::set_style(Style { json: true, color: ColorWhen::Never });
        output::failure(&usage_failure(&refused));
    } else {
        // A closed pipe: help was cut short.
        let _ = refused.print();
    }
    Err(ExitCode::from(u8::try_from(refused.exit_code()).unwrap_or(2)))
}

/// A mistake on the command line, for programs.
fn usage_failure(refused: &clap::Error) -> Failure {
    let text = refused.render().to_string();
    let mut parts = text.trim().splitn(2, "\n\n");
    let message = parts.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let message = match refused.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            "A command is missing".to_owned()
        }
        _ => message,
    };
    let fix = parts.next().map(str::trim).filter(|_| refused.kind() != ErrorKind::MissingSubcommand);
    let fix = fix
        .map(|fix| fix.trim_start_matches("tip: "))
        .filter(|fix| fix.len() < 500)
        .unwrap_or("Add --help to see commands and options.");
    Failure::new(message).with_code("usage").with_fix(fix)
}

/// Colours of help and of errors about the command line, which are printed before the options are known.
fn help_colors(arguments: &[OsString]) -> ColorChoice {
    let mut chosen = ColorChoice::Auto;
    for (index, argument) in arguments.iter().enumerate() {
        let value = match argument.to_str() {
            Some("--color") => arguments.get(index + 1).map(OsString::as_os_str),
            Some(text) => text.strip_prefix("--color=").map(OsStr::new),
            None => None,
        };
        chosen = match value.and_then(OsStr::to_str) {
            Some("always") => ColorChoice::Always,
            Some("never") => ColorChoice::Never,
            _ => chosen,
        };
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    /// Everything explains itself: each command and option has a text, and each command an example.
    #[test]
    fn every_command_and_option_has_help() {
        fn check(command: &clap::Command, path: &str) {
            assert!(command.get_about().is_some(), "{path}");
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{path}: {}", argument.get_id());
            }
            let example = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let has_example = example.contains("agent-mailbox ");
            assert!(has_example || path.matches(' ').count() > 1 || path == " config check", "{path}");
            for inner in command.get_subcommands() {
                check(inner, &format!("{path} {}", inner.get_name()));
            }
        }
        for inner in command().get_subcommands() {
            check(inner, &format!(" {}", inner.get_name()));
        }
    }

    #[test]
    fn every_command_is_in_a_group() {
        let mut built = command();
        built.build();
        let mut grouped: Vec<&str> =
            help::GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut all: Vec<&str> = built.get_subcommands().map(clap::Command::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
        let help = command().render_help().to_string();
        assert!(help.contains("Run the server (the default command)"), "{help}");
        assert!(help.contains("Global options:"), "{help}");
    }

    #[test]
    fn options_stand_before_and_after_the_command() {
        let early = Cli::parse_from(["agent-mailbox", "--data-dir", "d", "serve", "--roles", "api"]);
        assert_eq!(early.data_dir, Some(PathBuf::from("d")));
        assert!(matches!(early.command, Some(Command::Serve(Serve { roles })) if roles == [ServeRole::Api]));
        let late = Cli::parse_from(["agent-mailbox", "doctor", "--config", "f", "--json"]);
        assert_eq!(late.config, Some(PathBuf::from("f")));
        assert!(late.json);
        assert!(Cli::parse_from(["agent-mailbox"]).command.is_none());
        assert!(Cli::try_parse_from(["agent-mailbox", "serve", "--roles", "imap"]).is_err());
    }

    #[test]
    fn colours_of_help_follow_the_option() {
        let choice = |arguments: &[&str]| {
            help_colors(&arguments.iter().map(OsString::from).collect::<Vec<_>>()) as ColorChoice
        };
        assert_eq!(choice(&["a", "--help"]), ColorChoice::Auto);
        assert_eq!(choice(&["a", "--color", "never", "--help"]), ColorChoice::Never);
        assert_eq!(choice(&["a", "--color=always"]), ColorChoice::Always);
        assert_eq!(choice(&["a", "--color"]), ColorChoice::Auto);
    }

    #[test]
    fn a_mistake_is_told_to_programs() {
        let refused = command().try_get_matches_from(["agent-mailbox", "docter"]).unwrap_err();
        let told = usage_failure(&refused).to_json();
        assert_eq!(told["code"], "usage");
        assert!(told["error"].as_str().unwrap().contains("docter"), "{told}");
        assert!(told["fix"].as_str().unwrap().contains("doctor"), "{told}");
        let refused = command().try_get_matches_from(["agent-mailbox", "admin"]).unwrap_err();
        assert_eq!(usage_failure(&refused).to_json()["error"], "A command is missing");
    }
}
