//! The longer texts of `--help`: examples of each command, and the groups of commands.

use std::fmt::Write as _;

use clap::Command;

/// The commands by what they are for, in the order of the help.
pub(super) const GROUPS: [(&str, &[&str]); 4] = [
    ("Run", &["serve", "doctor", "config"]),
    ("Manage", &["admin", "import", "reindex"]),
    ("Back up and restore", &["backup", "restore"]),
    ("Connect and integrate", &["mcp", "openapi", "completions", "man", "help"]),
];

pub(super) const PROGRAM: &str = "\
Without a command, agent-mailbox runs the server. `agent-mailbox help COMMAND` explains a command.

Every option of the configuration can be set in a TOML file or as an environment variable:
http.listen is AGENT_MAILBOX__HTTP__LISTEN. `agent-mailbox config show` lists them all.

Examples:
  agent-mailbox                                   Run the server with its data in ./data
  agent-mailbox admin account create --email you@example.com --password-stdin
                                                  Create an account; prompts for the password
  agent-mailbox admin key create --workspace you@example.com
                                                  Create an API key
  agent-mailbox doctor                            Check the server and report problems";

pub(super) const SERVE: &str = "\
The first start creates the store in the data folder. Stop the server with Ctrl-C or SIGTERM: it finishes
the requests in progress first.

Examples:
  agent-mailbox serve
  agent-mailbox --config /etc/agent-mailbox.toml serve
  agent-mailbox --data-dir /var/lib/agent-mailbox serve --roles api,worker";

pub(super) const DOCTOR: &str = "\
Changes nothing. The exit code is 1 if a check failed, and 0 otherwise.

Examples:
  agent-mailbox doctor
  agent-mailbox doctor --json | jq '.checks[] | select(.status != \"ok\")'";

pub(super) const CONFIG: &str = "\
Examples:
  agent-mailbox config check
  agent-mailbox --config /etc/agent-mailbox.toml config show";

pub(super) const ADMIN: &str = "\
Admin commands work with and without a running server, on the same machine and with the same configuration.

Examples:
  agent-mailbox admin account create --email you@example.com --password-stdin
  agent-mailbox admin key create --workspace you@example.com --expires-in 30d
  agent-mailbox admin workspace set-plan you@example.com developer
  agent-mailbox admin trace '<abc@example.net>'";

pub(super) const ACCOUNT_CREATE: &str = "\
The data folder must exist: start the server once first, or create an empty folder.

Examples:
  agent-mailbox admin account create --email you@example.com --password-stdin
  pass mail | agent-mailbox admin account create --email you@example.com --password-stdin --json";

pub(super) const KEY_CREATE: &str = "\
Examples:
  agent-mailbox admin key create --workspace you@example.com
  agent-mailbox admin key create --workspace you@example.com --role member --expires-in 30d
  agent-mailbox admin key create --workspace you@example.com --scope read --mailbox support@example.com";

pub(super) const AUDIT: &str = "\
Works while the server runs. Entries are kept for 90 days.

Examples:
  agent-mailbox admin audit --workspace you@example.com
  agent-mailbox admin audit --workspace you@example.com --limit 20 --json";

pub(super) const TRACE: &str = "\
Examples:
  agent-mailbox admin trace '<abc@example.net>'
  agent-mailbox admin trace eml_01h8xgjy4n7r2v6c0d5t9kqwez --json";

pub(super) const BACKUP: &str = "\
Works while the server runs. Keep a copy of the master key elsewhere: a backup cannot be read without it.

Examples:
  agent-mailbox backup /backups/2026-07-14
  agent-mailbox backup /backups/2026-07-14 --json";

pub(super) const RESTORE: &str = "\
First put the master key of the backup in place. A SQLite backup can be restored into PostgreSQL, and
vice versa.

Examples:
  agent-mailbox --data-dir /var/lib/agent-mailbox restore /backups/2026-07-14";

pub(super) const IMPORT: &str = "\
Works while the server runs. Messages are scanned, threaded and indexed like received mail.

Examples:
  agent-mailbox import support@agents.example.com old.mbox
  agent-mailbox import support@agents.example.com ~/Maildir --json";

pub(super) const REINDEX: &str = "\
Works while the server runs. Needed when `agent-mailbox doctor` says so.

Examples:
  agent-mailbox reindex";

pub(super) const MCP: &str = "\
For MCP clients that start a program and talk to it over standard input and output. Clients that speak HTTP
connect to /mcp directly and need no bridge.

Examples:
  AGENT_MAILBOX_API_KEY=sk-proj-… agent-mailbox mcp
  agent-mailbox mcp --url https://mail.example.com --profile agent-inbox --key-file /run/secrets/key";

pub(super) const OPENAPI: &str = "\
Examples:
  agent-mailbox openapi > openapi.json
  agent-mailbox openapi --agent";

pub(super) const COMPLETIONS: &str = "\
Examples:
  agent-mailbox completions bash > ~/.local/share/bash-completion/completions/agent-mailbox
  agent-mailbox completions zsh > ~/.zfunc/_agent-mailbox
  agent-mailbox completions fish > ~/.config/fish/completions/agent-mailbox.fish";

pub(super) const MAN: &str = "\
Examples:
  agent-mailbox man | man -l -
  agent-mailbox man --dir ~/.local/share/man/man1";

/// The command line with its commands in groups.
pub(super) fn with_groups(command: Command) -> Command {
    // Has the command `help`, which is one of them.
    let mut built = command.clone();
    built.build();
    let about = |name: &str| {
        let found = built.find_subcommand(name).and_then(Command::get_about);
        found.map(ToString::to_string).unwrap_or_default()
    };
    let mut template = "{before-help}{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        let _ = write!(template, "\n{title}:\n");
        for name in names {
            let _ = writeln!(template, "  {name:<12} {}", about(name));
        }
    }
    template.push_str("\nGlobal options:\n{options}{after-help}");
    command.help_template(template)
}
