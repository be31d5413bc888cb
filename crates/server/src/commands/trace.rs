//! `admin trace`: what became of a message, for people or as JSON.

use mail::printable;
use model::Timestamp;
use operations::trace::{self, Trace, TracedEmail, TracedRecipient, TracedSend};

use crate::{
    config::Config,
    failure::{Failure, Result},
    open, output,
};

/// Maximum characters shown of text from outside.
const MAX_PRINTED_CHARS: usize = 500;

pub(super) async fn run(config: &Config, named: &str) -> Result<()> {
    let app = open::attach(config).await?;
    let found = trace::find(&app, named).await.map_err(|error| {
        Failure::from(error).or_fix(
            "Give a Message-ID, an email id or a queue id. A message that was refused was never stored: the log has it.",
        )
    })?;
    if output::is_json() {
        return output::json(&found);
    }
    show(&found);
    Ok(())
}

fn show(found: &Trace) {
    for id in &found.message_ids {
        output::line(format!("Message-ID  <{}>", printable(id, MAX_PRINTED_CHARS)));
    }
    for email in &found.emails {
        output::line(email_lines(email));
    }
    for send in &found.sends {
        output::line(send_lines(send));
        for recipient in &send.recipients {
            output::line(recipient_lines(recipient));
        }
    }
}

fn email_lines(email: &TracedEmail) -> String {
    let authentication = &email.sender_authentication;
    let what = if email.outgoing { "Written" } else { "Arrived" };
    let scan = email.scan_status.map_or("pending", |status| status.as_str());
    format!(
        "\n{what}  {}  in {}\n  email      {}\n  mailbox    {} of workspace {}\n  folder     {}\n  \
         from       {}\n  to         {}\n  size       {}\n  scan       {scan}\n  \
         sender     spf {}, dkim {}, dmarc {}",
        email.arrived_at,
        email.mailbox,
        email.id,
        email.mailbox_id,
        email.workspace_id,
        email.folder,
        printable(&email.from, MAX_PRINTED_CHARS),
        printable(&email.recipient, MAX_PRINTED_CHARS),
        output::bytes(email.size.unsigned_abs()),
        authentication.spf.as_str(),
        authentication.dkim.as_str(),
        authentication.dmarc.as_str(),
    )
}

fn send_lines(send: &TracedSend) -> String {
    format!(
        "\nSent     {}  from {}\n  queue id   {} ({})\n  workspace  {}\n  retried    until {}",
        send.queued_at,
        send.from.as_deref().unwrap_or("<>"),
        send.queue_id,
        send.kind,
        send.workspace_id,
        send.expires_at,
    )
}

fn recipient_lines(recipient: &TracedRecipient) -> String {
    let when = |what: &str, at: Option<Timestamp>| at.map(|at| format!(", {what} {at}")).unwrap_or_default();
    format!(
        "  to         {}  {} by {}, {}{}{}\n             {}",
        printable(&recipient.recipient, MAX_PRINTED_CHARS),
        recipient.state.as_str(),
        recipient.destination,
        output::plural(recipient.attempts.unsigned_abs(), "attempt"),
        when("last attempt", recipient.last_attempt_at),
        when("next attempt", recipient.next_attempt_at),
        printable(recipient.last_reply.as_deref().unwrap_or("no reply yet"), MAX_PRINTED_CHARS),
    )
}
