//! The section on outbound mail: what a server needs before its mail reaches other servers.

use super::{
    html::Html,
    reference::Reference,
    tables::{row, table},
};

const BEFORE: &str = "A new server delivers to its own mailboxes only; a send to any other address answers 422 \
    `outbound_not_configured`. To let mail out, the operator sets `outbound.mode` in `config.toml`, or \
    `AGENT_MAILBOX__OUTBOUND__MODE`, and restarts the server.";

const AFTER: &str = "`agent-mailbox doctor` checks the settings and the server's DNS records. `docs/sending.md` in the \
    source describes queues, retries and bounces.";

const MODES: [(&str, &str); 4] = [
    ("`local`", "The default. Mailboxes of this server only."),
    (
        "`relay`",
        "Hands mail to a smarthost: set `outbound.relay_url`, such as `smtp://user:password@smtp.example.com:587`.",
    ),
    (
        "`direct`",
        "Delivers to each domain's mail servers. Needs outgoing port 25, and SPF, DKIM and reverse DNS records.",
    ),
    ("`sandbox`", "Accepts mail for other servers and shows it in the console, but sends none of it."),
];

pub(super) fn section(html: &mut Html, _: &Reference) {
    html.marked_line("p", BEFORE);
    table(html, &["Mode", "What happens"], |html| {
        for (mode, text) in MODES {
            row(html, mode, &[text]);
        }
    });
    html.marked_line("p", AFTER);
}
