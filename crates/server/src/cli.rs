//! The command line: its names and options, which scripts rely on.

use std::{path::PathBuf, str::FromStr};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use model::{Plan, Role, Timestamp, affiliate::PayoutStatus, payments::PaymentState};

/// A mail service for AI agents.
#[derive(Debug, Parser)]
#[command(name = "agent-mailbox", version, after_help = AFTER_HELP)]
pub struct Cli {
    /// Reads this configuration file instead of agent-mailbox.toml in the working directory.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keeps everything in this folder, whatever the configuration says.
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// What to do; serving, if nothing is said.
    #[command(subcommand)]
    pub command: Option<Command>,
}

const AFTER_HELP: &str = "Without a command, agent-mailbox serves. Every option of the configuration can be set in a \
TOML file or as an environment variable: http.listen is AGENT_MAILBOX__HTTP__LISTEN.";

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs the service.
    Serve(Serve),
    /// Works on accounts, keys, workspaces and payouts, also while the service runs.
    #[command(subcommand)]
    Admin(Admin),
    /// Looks at everything the service needs and says what is right and what is wrong.
    Doctor,
    /// Checks or shows the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Prints the OpenAPI document.
    Openapi {
        /// Prints that of the keyless interface.
        #[arg(long)]
        agent: bool,
    },
    /// Prints completions for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Saves everything but the master key into a new folder, also while the service runs.
    Backup {
        /// The folder, which must not exist yet or be empty.
        dir: PathBuf,
    },
    /// Brings an mbox file, a message or a folder of messages into a mailbox, also while the service runs.
    Import {
        /// The mailbox, by its address or id.
        mailbox: String,
        /// An mbox file, a message, or a folder of them.
        path: PathBuf,
    },
    /// Lets a client that speaks the Model Context Protocol over standard input and output reach a running service.
    Mcp(Mcp),
    /// Makes the index for search anew from the stored mail, also while the service runs.
    Reindex,
    /// Fills an empty store from a backup.
    Restore {
        /// The folder of the backup.
        dir: PathBuf,
    },
}

/// Options of `mcp`. The key is read from the environment variable `AGENT_MAILBOX_API_KEY`, unless there is a file.
#[derive(Debug, Args)]
pub struct Mcp {
    /// The service's address.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// What the client gets to see: full or agent-inbox.
    #[arg(long)]
    pub profile: Option<String>,
    /// Reads the API key from this file instead of `AGENT_MAILBOX_API_KEY`.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

/// Options of `serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// What this process does, separated by commas.
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
    /// Answers over HTTP.
    Api,
    /// Takes mail in.
    Smtp,
    /// Does what nobody asks for: ends what has had its time, keeps an eye on the stores.
    Worker,
}

/// What operators do.
#[derive(Debug, Subcommand)]
pub enum Admin {
    /// Accounts.
    #[command(subcommand)]
    Account(Account),
    /// API keys.
    #[command(subcommand)]
    Key(Key),
    /// Workspaces.
    #[command(subcommand)]
    Workspace(Workspace),
    /// Payouts to affiliates.
    #[command(subcommand)]
    Payout(Payout),
    /// The keys that domains sign mail with.
    #[command(subcommand)]
    Dkim(Dkim),
    /// Payments of the keyless interface.
    #[command(subcommand)]
    Payments(Payments),
    /// Shows what became of a message: where it arrived, and how far it has come on its way out.
    Trace {
        /// Its Message-ID, the id of one of its emails, or its id in the queue.
        id: String,
        /// Answers in JSON.
        #[arg(long)]
        json: bool,
    },
}

impl Admin {
    /// Whether the output is JSON.
    pub const fn json(&self) -> bool {
        match self {
            Self::Account(Account::Create { json, .. })
            | Self::Key(Key::Create { json, .. } | Key::List { json, .. } | Key::Revoke { json, .. })
            | Self::Workspace(Workspace::List { json } | Workspace::SetPlan { json, .. })
            | Self::Payout(Payout::Add { json, .. })
            | Self::Dkim(Dkim::List { json, .. } | Dkim::Rotate { json, .. })
            | Self::Payments(Payments::List { json, .. } | Payments::Totals { json })
            | Self::Trace { json, .. } => *json,
        }
    }
}

/// What can be done with the keys of domains.
#[derive(Debug, Subcommand)]
pub enum Dkim {
    /// Shows the TXT records to publish, and which of them were seen in DNS.
    List {
        /// One of this server's domains, or a custom one; all of the server's if left out.
        #[arg(long)]
        domain: Option<String>,
        /// Answers in JSON.
        #[arg(long)]
        json: bool,
    },
    /// Makes the next keys of a domain. They sign as soon as they are seen in DNS; the old record stays until the next turn.
    Rotate {
        /// One of this server's domains, or a custom one.
        #[arg(long)]
        domain: String,
        /// Answers in JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What can be done with accounts.
#[derive(Debug, Subcommand)]
pub enum Account {
    /// Makes an account with a workspace of its own.
    Create {
        /// The address to log in with.
        #[arg(long)]
        email: String,
        /// Takes the password from the first line of standard input; a terminal is asked for it.
        #[arg(long, required = true)]
        password_stdin: bool,
        /// The name of the workspace.
        #[arg(long, value_name = "NAME")]
        workspace_name: Option<String>,
        /// The plan of the workspace: free, developer or enterprise; free if left out, and `operator.plan` for the first
        /// account of a server.
        #[arg(long, value_parser = Plan::from_str)]
        plan: Option<Plan>,
        /// Answers in JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub enum Key {
    /// Makes an API key and shows it, this once.
    Create {
        /// The id of the workspace, or the address of an account that has one.
        #[arg(long)]
        workspace: String,
        /// What the key is for.
        #[arg(long, default_value = "command line")]
        name: String,
        /// What the key may do: admin or member.
        #[arg(long, default_value = "admin", value_parser = Role::from_str)]
        role: Role,
        /// How long the key works, such as 30d, 12h, 15m or 1s; for ever if left out.
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        expires_in: Option<i64>,
        /// Answers in JSON.
        #[arg(long)]
        json: bool,
    },
    /// Lists the keys of a workspace, without their secrets.
    List {
        /// The id of the workspace, or the address of an account that has one.
        #[arg(long)]
        workspace: String,
        /// Answers in JSON.
        #[arg(long)]
        json: bool,
    },
    /// Ends an API key within a second.
    Revoke {
        /// The id of the key.
        id: String,
        /// Answers in JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What can be done with workspaces.
#[derive(Debug, Subcommand)]
pub enum Workspace {
    /// Lists all workspaces.
    List {
        /// Answers in JSON.
        #[arg(long)]
        json: bool,
    },
    /// Moves a workspace to another plan.
    SetPlan {
        /// The id of the workspace, or the address of an account that has one.
        workspace: String,
        /// The plan: free, developer or enterprise.
        #[arg(value_parser = Plan::from_str)]
        plan: Plan,
        /// Answers in JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What is told about payments of the keyless interface.
#[derive(Debug, Subcommand)]
pub enum Payments {
    /// Lists payments, newest first.
    List {
        /// Only those in this state: settling, pending, settled (paid for and not done yet), fulfilled or failed.
        #[arg(long, value_parser = PaymentState::from_str)]
        state: Option<PaymentState>,
        /// Only those of this wallet.
        #[arg(long)]
        payer: Option<String>,
        /// How many at most.
        #[arg(long, default_value_t = 100)]
        limit: u32,
        /// Answers in JSON.
        #[arg(long)]
        json: bool,
    },
    /// Shows how many payments are in each state, and how much they are together.
    Totals {
        /// Answers in JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What can be done with payouts.
#[derive(Debug, Subcommand)]
pub enum Payout {
    /// Notes a payout to an affiliate; a paid one settles the commissions of its period.
    Add {
        /// The id of the affiliate's workspace, or the address of an account that has one.
        #[arg(long)]
        workspace: String,
        /// The amount.
        #[arg(long)]
        amount_cents: i64,
        /// The currency, as three letters.
        #[arg(long)]
        currency: String,
        /// Where it stands: pending, paid or failed.
        #[arg(long, value_parser = PayoutStatus::from_str)]
        status: PayoutStatus,
        /// The first moment that it pays for, such as 2026-07-01T00:00:00Z.
        #[arg(long, value_name = "TIME", value_parser = Timestamp::from_str)]
        period_start: Timestamp,
        /// The moment after the last one that it pays for.
        #[arg(long, value_name = "TIME", value_parser = Timestamp::from_str)]
        period_end: Timestamp,
        /// The operator's own reference.
        #[arg(long)]
        reference: Option<String>,
        /// Answers in JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What can be done with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Finds mistakes.
    Check,
    /// Prints every option with the value in force, without secrets.
    Show,
}

/// A duration such as `30d`, `12h`, `15m` or `1s`, in seconds.
fn parse_duration(text: &str) -> Result<i64, String> {
    let expected = || "expected a whole number with s, m, h or d, such as 30d".to_owned();
    let unit = text.chars().next_back().ok_or_else(expected)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(expected()),
    };
    let digits = &text[..text.len() - 1];
    let number =
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i64>().ok()).flatten();
    let number = number.filter(|number| *number > 0).ok_or_else(expected)?;
    // A thousand years are enough, and adding them to the current time cannot overflow.
    number
        .checked_mul(seconds)
        .filter(|total| *total <= 1000 * 366 * 86_400)
        .ok_or_else(|| "is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_are_understood() {
        for (text, seconds) in [("1s", 1), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000)] {
            assert_eq!(parse_duration(text), Ok(seconds), "{text}");
        }
        for text in [
            "",
            "s",
            "10",
            "0s",
            "-1s",
            "+1s",
            "1.5h",
            "1w",
            "1 d",
            "99999999999999999999d",
            "999999999d",
            "1é",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn options_stand_before_and_after_the_command() {
        let early = Cli::parse_from(["agent-mailbox", "--data-dir", "d", "serve", "--roles", "api"]);
        assert_eq!(early.data_dir, Some(PathBuf::from("d")));
        assert!(matches!(early.command, Some(Command::Serve(Serve { roles })) if roles == [ServeRole::Api]));
        let late = Cli::parse_from(["agent-mailbox", "doctor", "--config", "f"]);
        assert_eq!(late.config, Some(PathBuf::from("f")));
        assert!(Cli::parse_from(["agent-mailbox"]).command.is_none());
        assert!(Cli::try_parse_from(["agent-mailbox", "serve", "--roles", "imap"]).is_err());
    }
}
