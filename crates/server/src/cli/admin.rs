//! `admin …`: the commands of operators.

use std::str::FromStr;

use clap::Subcommand;
use model::{Plan, Role, Scope, Timestamp, affiliate::PayoutStatus, payments::PaymentState};

use super::help;

/// What operators do.
#[derive(Debug, Subcommand)]
pub enum Admin {
    /// Create accounts
    #[command(subcommand)]
    Account(Account),
    /// Create, list and revoke API keys
    #[command(subcommand)]
    Key(Key),
    /// List workspaces and change their plans
    #[command(subcommand)]
    Workspace(Workspace),
    /// Record payouts to affiliates
    #[command(subcommand)]
    Payout(Payout),
    /// Show who changed what in a workspace, newest first
    #[command(after_help = help::AUDIT)]
    Audit {
        /// The workspace: its id (ws_…) or the email address of its account
        #[arg(long)]
        workspace: String,
        /// The maximum number of entries
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// Show and rotate DKIM keys
    #[command(subcommand)]
    Dkim(Dkim),
    /// Show payments of the keyless API
    #[command(subcommand)]
    Payments(Payments),
    /// List the nodes of a service on PostgreSQL, their work, connections and lag, and what is wrong with them
    Nodes,
    /// Show what happened to a message: where it arrived, and each delivery attempt
    #[command(after_help = help::TRACE)]
    Trace {
        /// A Message-ID, an email id (eml_…) or a queue id
        id: String,
    },
}

/// What can be done with accounts.
#[derive(Debug, Subcommand)]
pub enum Account {
    /// Create an account with its own workspace
    #[command(after_help = help::ACCOUNT_CREATE)]
    Create {
        /// The email address to log in with
        #[arg(long)]
        email: String,
        /// Read the password from the first line of standard input; on a terminal, prompt for it
        #[arg(long, required = true)]
        password_stdin: bool,
        /// The name of the workspace [default: made from the email address]
        #[arg(long, value_name = "NAME")]
        workspace_name: Option<String>,
        /// The plan of the workspace: free, developer or enterprise [default: free, and `operator.plan` for the first account]
        #[arg(long, value_parser = Plan::from_str)]
        plan: Option<Plan>,
        /// Print only the id of the workspace, for $(…) in a shell
        #[arg(long, short, conflicts_with = "json")]
        quiet: bool,
    },
}

/// What can be done with API keys.
#[derive(Debug, Subcommand)]
pub enum Key {
    /// Create an API key and show it once
    #[command(after_help = help::KEY_CREATE)]
    Create {
        /// The workspace: its id (ws_…) or the email address of its account
        #[arg(long)]
        workspace: String,
        /// What the key is for
        #[arg(long, default_value = "command line")]
        name: String,
        /// What the key may do: admin or member
        #[arg(long, default_value = "admin", value_parser = Role::from_str)]
        role: Role,
        /// What a narrowed key may do: read, organize, draft, send, agent or manage; may be repeated [default: all of its role]
        #[arg(long = "scope", value_name = "SCOPE", value_parser = Scope::from_str)]
        scopes: Vec<Scope>,
        /// A mailbox that a narrowed key sees: its address or id; may be repeated [default: all]
        #[arg(long = "mailbox", value_name = "MAILBOX")]
        mailboxes: Vec<String>,
        /// How long the key works, such as 30d, 12h, 15m or 1s [default: until it is revoked]
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        expires_in: Option<i64>,
        /// Print only the key, for $(…) in a shell
        #[arg(long, short, conflicts_with = "json")]
        quiet: bool,
    },
    /// List the API keys of a workspace, without their secrets
    List {
        /// The workspace: its id (ws_…) or the email address of its account
        #[arg(long)]
        workspace: String,
    },
    /// Revoke an API key; it stops working within a second
    Revoke {
        /// The id of the key (key_…)
        id: String,
    },
}

/// What can be done with workspaces.
#[derive(Debug, Subcommand)]
pub enum Workspace {
    /// List all workspaces
    List,
    /// Move a workspace to another plan
    SetPlan {
        /// The workspace: its id (ws_…) or the email address of its account
        workspace: String,
        /// The plan: free, developer or enterprise
        #[arg(value_parser = Plan::from_str)]
        plan: Plan,
    },
}

/// What can be done with payouts.
#[derive(Debug, Subcommand)]
pub enum Payout {
    /// Record a payout to an affiliate; a paid one covers the commissions of its period
    Add {
        /// The affiliate's workspace: its id (ws_…) or the email address of its account
        #[arg(long)]
        workspace: String,
        /// The amount in cents
        #[arg(long, value_name = "CENTS")]
        amount_cents: i64,
        /// The currency, as three letters
        #[arg(long)]
        currency: String,
        /// The status of the payout: pending, paid or failed
        #[arg(long, value_parser = PayoutStatus::from_str)]
        status: PayoutStatus,
        /// The start of the period, such as 2026-07-01T00:00:00Z
        #[arg(long, value_name = "TIME", value_parser = Timestamp::from_str)]
        period_start: Timestamp,
        /// The end of the period, not included
        #[arg(long, value_name = "TIME", value_parser = Timestamp::from_str)]
        period_end: Timestamp,
        /// Your own reference
        #[arg(long)]
        reference: Option<String>,
    },
}

/// What can be done with the keys of domains.
#[derive(Debug, Subcommand)]
pub enum Dkim {
    /// Show the TXT records to publish, and which of them are in DNS
    List {
        /// A domain [default: all hosted domains of this server]
        #[arg(long)]
        domain: Option<String>,
    },
    /// Create the next keys of a domain; they sign as soon as their records are in DNS
    Rotate {
        /// A hosted domain of this server, or a custom domain
        #[arg(long)]
        domain: String,
    },
}

/// What is shown of payments.
#[derive(Debug, Subcommand)]
pub enum Payments {
    /// List payments, newest first
    List {
        /// Only payments in this state: settling, pending, settled (paid, but the call is not finished), fulfilled or
        /// failed
        #[arg(long, value_parser = PaymentState::from_str)]
        state: Option<PaymentState>,
        /// Only payments from this wallet
        #[arg(long, value_name = "ADDRESS")]
        payer: Option<String>,
        /// The maximum number of payments
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// Show the number and sum of payments in each state
    Totals,
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
        .ok_or_else(|| "is too long: at most 1,000 years".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
