//! Arguments that a tool does not take: refused with the name that was meant.

use operations::{Detail, Error, Result};
use rmcp::model::JsonObject;
use serde_json::Value;

use crate::tools::Tool;

/// Words that models use for the same thing. The first that the tool takes was meant.
const SYNONYMS: [&[&str]; 17] = [
    &["mailboxid", "mailbox", "inbox", "inboxid", "mailboxaddress", "mailboxemail", "address", "accountid"],
    &["emailid", "email", "messageid", "message", "mailid", "msgid"],
    &["threadid", "thread", "conversation"],
    &["conversationid", "conversation", "chatid"],
    &["query", "q", "search", "searchquery", "keywords", "term", "text"],
    &["text", "body", "content", "plaintext", "plain", "bodytext", "message"],
    &["html", "bodyhtml", "htmlbody"],
    &["to", "recipient", "recipients", "toaddress", "email"],
    &["from", "sender", "fromaddress"],
    &["limit", "count", "maxresults", "pagesize", "perpage", "top", "max"],
    &["cursor", "nextcursor", "pagetoken", "nextpagetoken", "after", "offset"],
    &["folderid", "folder", "foldername", "targetfolder", "destination"],
    &["customlabels", "labels", "labelids", "addlabels", "tags", "customlabel", "label"],
    &["scheduledsendat", "sendat", "scheduledat", "scheduleat", "when", "time", "date", "at"],
    &["timeoutseconds", "timeout", "wait", "seconds", "maxwait"],
    &["isread", "read", "unread", "isunread", "seen", "markread", "markasread"],
    &["confirmationtoken", "token", "confirm", "confirmation"],
];

/// Refuses unknown arguments, with what was probably meant and what the tool takes.
pub(crate) fn check(tool: &Tool, arguments: &JsonObject) -> Result<()> {
    let known = tool.argument_names();
    let unknown: Vec<&String> = arguments.keys().filter(|name| !known.contains(&name.as_str())).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let free: Vec<&str> = known.iter().copied().filter(|name| !arguments.contains_key(*name)).collect();
    let details = unknown.iter().map(|name| {
        let meant = meant(name, &free, tool);
        let hint = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
        Detail::new(name.as_str(), format!("unknown argument `{name}`{hint}"))
    });
    let refused = Error::refuse(details.collect()).err();
    refused.map_or(Ok(()), |refused| Err(refused.with_fix(usage(tool))))
}

/// What a tool takes, in one sentence.
fn usage(tool: &Tool) -> String {
    let required = tool.required();
    let (needs, may): (Vec<&str>, Vec<&str>) =
        tool.declared_names().into_iter().partition(|name| required.contains(name));
    let list = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match (needs.is_empty(), may.is_empty()) {
        (true, true) => format!("{} takes no arguments.", tool.name()),
        (true, false) => format!("{} takes {}.", tool.name(), list(&may)),
        (false, true) => format!("{} needs {}.", tool.name(), list(&needs)),
        (false, false) => format!("{} needs {} and takes {}.", tool.name(), list(&needs), list(&may)),
    }
}

/// The argument that was meant, if that can be told.
fn meant<'a>(given: &str, free: &[&'a str], tool: &Tool) -> Option<&'a str> {
    let wanted = plain(given);
    let find = |wanted: &str| free.iter().copied().find(|name| plain(name) == wanted);
    if let Some(same) = find(&wanted).or_else(|| find(&format!("{wanted}id"))) {
        return Some(same);
    }
    if wanted == "id" || wanted == "ids" {
        // The resource itself is the last in the path.
        let last = tool.path.rsplit('/').find_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        return last.and_then(|last| free.iter().copied().find(|name| *name == last)).or_else(|| find("ids"));
    }
    let synonyms = SYNONYMS.iter().filter(|group| group.contains(&wanted.as_str()));
    if let Some(found) = synonyms.flat_map(|group| group.iter()).find_map(|name| find(name)) {
        return Some(found);
    }
    nearest(given, free.iter().copied())
}

/// A name without its case, hyphens and underscores: `mailbox_id` and `mailboxId` are the same.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

/// The name nearest to one that does not exist. Beyond a third of the letters it would be a guess.
pub(crate) fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = plain(given);
    let scored = names.map(|name| (strsim::osa_distance(&wanted, &plain(name)), name));
    let nearest = scored.min_by_key(|(distance, _)| *distance);
    nearest.filter(|(distance, _)| *distance <= wanted.chars().count() / 3).map(|(_, name)| name)
}

/// A flag that is an argument of this door alone.
pub(crate) fn take_flag(arguments: &mut JsonObject, name: &str) -> Result<bool> {
    match arguments.remove(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(_) => Err(Error::invalid(name, "expected true or false")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::profile::Profile;

    fn complaint(tool: &str, arguments: Value) -> (Vec<String>, String) {
        let tool = Profile::Full.tools().find(tool).unwrap();
        let Value::Object(arguments) = arguments else { unreachable!() };
        let refused = check(tool, &arguments).unwrap_err();
        let details = refused.details().iter().map(|detail| detail.message.clone()).collect();
        (details, refused.fix().unwrap_or_default().to_owned())
    }

    /// rules: MCP-9
    #[test]
    fn the_argument_that_was_meant_is_named() {
        for (tool, given, meant) in [
            ("list_emails", "mailbox", "mailboxId"),
            ("list_emails", "mailbox_id", "mailboxId"),
            ("get_mailbox", "id", "mailboxId"),
            ("get_mailbox", "mailboxid", "mailboxId"),
            ("get_email", "email_id", "emailId"),
            ("get_email", "id", "emailId"),
            ("get_email", "message_id", "emailId"),
            ("get_thread", "thread", "threadId"),
            ("search_emails", "q", "query"),
            ("list_emails", "max_results", "limit"),
            ("list_emails", "page_token", "cursor"),
            ("send_email", "body", "text"),
            ("send_email", "recipients", "to"),
            ("save_draft", "text", "body"),
            ("move_email", "folder", "folderId"),
            ("update_email", "labels", "custom_labels"),
            ("schedule_send", "send_at", "scheduled_send_at"),
            ("wait_for_email", "timeout", "timeout_seconds"),
            ("create_mailbox", "nmae", "name"),
            ("create_mailbox", "idempotency_key", "idempotencyKey"),
            ("delete_mailbox", "confirmation_token", "confirmationToken"),
        ] {
            let (messages, _) = complaint(tool, json!({ given: "x" }));
            assert_eq!(messages, [format!("unknown argument `{given}`; did you mean `{meant}`?")], "{tool}");
        }
    }

    #[test]
    fn nonsense_gets_no_guess_but_a_list() {
        let (messages, fix) = complaint("get_email_context", json!({ "colour": "red", "mailboxId": "a" }));
        assert_eq!(messages, ["unknown argument `colour`"]);
        assert!(fix.starts_with("get_email_context needs `mailboxId`, `emailId` and takes "), "{fix}");
        assert!(nearest("list_emials", ["list_emails", "get_email"].into_iter()) == Some("list_emails"));
        assert!(nearest("rule_the_world", ["list_emails"].into_iter()).is_none());
    }
}
