//! The form of a send policy: its fields as people see them, and the policy that they describe.

use model::send_policies::{NewSendPolicy, SendPolicy};
use operations::Result;
use serde_json::{Value, json};

use super::fields::{Fields, input};

/// The choices of a field: value, label and what it means.
type Choices = &'static [(&'static str, &'static str)];

pub(super) const MODES: Choices = &[
    ("open", "Everyone"),
    ("correspondents", "Addresses that we wrote to, or that wrote to us"),
    ("known", "Addresses that we wrote to"),
    ("list", "Only the allowed addresses below"),
];
pub(super) const NEW_RECIPIENT: Choices =
    &[("allow", "Send"), ("review", "Ask a person first"), ("block", "Refuse")];
pub(super) const REVIEWS: Choices =
    &[("none", "Only messages that a rule asks a review for"), ("all", "All messages")];
pub(super) const QUIET: Choices = &[("schedule", "Send it when they end"), ("review", "Ask a person first")];
pub(super) const SCANS: Choices =
    &[("off", "Do not look for it"), ("review", "Ask a person first"), ("block", "Refuse")];
/// What is looked for in contents: the name of the field, its label and what it means.
const SCANNED: &[(&str, &str, &str)] = &[
    ("secrets", "Passwords, keys and tokens", "In the text, and in files that can be read."),
    ("personal", "Personal data", "Card numbers, IBANs, national ids, lists of addresses."),
    ("attachments", "Files", "Any file, whatever is in it."),
];
/// The caps: the name of the field, its label and what it counts.
pub(super) const CAPS: &[(&str, &str, &str)] = &[
    ("per_hour", "Recipients per hour", "In any 60 minutes."),
    ("per_day", "Recipients per day", "In any 24 hours."),
    (
        "new_recipients_per_day",
        "New recipients per day",
        "Addresses that the workspace has never written to.",
    ),
    ("per_recipient_per_day", "Messages to one recipient per day", "However they are spread over the day."),
];

/// What the fields show before anything is typed.
pub(super) struct PolicyFields {
    pub(super) mode: &'static str,
    pub(super) allow: String,
    pub(super) block: String,
    pub(super) new_recipient: &'static str,
    pub(super) caps: Vec<(&'static str, &'static str, &'static str, String)>,
    pub(super) scans: Vec<(&'static str, &'static str, &'static str, &'static str)>,
    pub(super) is_quiet: bool,
    pub(super) timezone: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) then: &'static str,
    pub(super) review: &'static str,
    pub(super) hours: String,
}

impl PolicyFields {
    /// Those of a policy; `timezone` is suggested where it has no quiet hours.
    pub(super) fn of(policy: &SendPolicy, timezone: &str) -> Self {
        let lines = |patterns: &[model::send_policies::AddressPattern]| {
            patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        let caps = &policy.caps;
        let values = [caps.per_hour, caps.per_day, caps.new_recipients_per_day, caps.per_recipient_per_day];
        let shown = |cap: Option<i64>| cap.map(|cap| cap.to_string()).unwrap_or_default();
        let quiet = policy.quiet_hours.as_ref();
        Self {
            mode: policy.recipients.mode.as_str(),
            allow: lines(&policy.recipients.allow),
            block: lines(&policy.recipients.block),
            new_recipient: policy.new_recipient.as_str(),
            caps: CAPS
                .iter()
                .zip(values)
                .map(|((name, label, hint), cap)| (*name, *label, *hint, shown(cap)))
                .collect(),
            scans: SCANNED
                .iter()
                .zip([policy.scan.secrets, policy.scan.personal, policy.scan.attachments])
                .map(|((name, label, hint), action)| (*name, *label, *hint, action.as_str()))
                .collect(),
            is_quiet: quiet.is_some(),
            timezone: quiet.map_or_else(|| timezone.to_owned(), |quiet| quiet.timezone.clone()),
            from: quiet.map_or_else(|| "22:00".to_owned(), |quiet| quiet.from.to_string()),
            to: quiet.map_or_else(|| "07:00".to_owned(), |quiet| quiet.to.to_string()),
            then: quiet.map_or("schedule", |quiet| quiet.then.as_str()),
            // `matched` means the same.
            review: if policy.review.as_str() == "all" { "all" } else { "none" },
            hours: policy.hold.hours.to_string(),
        }
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// A number that was typed; something else is left to the checks of the API.
fn number(fields: &Fields, name: &str) -> Value {
    match fields.given(name) {
        None => Value::Null,
        Some(text) => text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number)),
    }
}

/// The policy that a form describes. All fields are set, so that a wider policy above does not widen it later.
pub(super) fn policy(fields: &Fields, present: &SendPolicy) -> Result<NewSendPolicy> {
    let quiet = fields.ticked("quiet_on").then(|| {
        json!({
            "timezone": fields.get("timezone"), "from": fields.get("from"), "to": fields.get("to"),
            "then": fields.given("then").unwrap_or("schedule"),
        })
    });
    let hours = match number(fields, "hours") {
        Value::Null => json!(present.hold.hours),
        hours => hours,
    };
    let caps: serde_json::Map<String, Value> =
        CAPS.iter().map(|(name, ..)| ((*name).to_owned(), number(fields, name))).collect();
    let scan: serde_json::Map<String, Value> = SCANNED
        .iter()
        .map(|(name, ..)| ((*name).to_owned(), json!(fields.given(name).unwrap_or("off"))))
        .collect();
    input(&json!({
        "recipients": {
            "mode": fields.given("mode").unwrap_or("open"),
            "allow": lines(fields.get("allow")), "block": lines(fields.get("block")),
        },
        "new_recipient": fields.given("new_recipient").unwrap_or("allow"),
        "caps": caps, "quiet_hours": quiet, "scan": scan, "review": fields.given("review").unwrap_or("none"),
        "hold": { "hours": hours, "then": present.hold.then },
    }))
}

/// The field and the label that an input of the API belongs to.
pub(super) fn place(path: &str) -> Option<(String, String)> {
    let known = [
        ("recipients.mode", "mode", "Who may be written to"),
        ("recipients.allow", "allow", "Allowed addresses"),
        ("recipients.block", "block", "Blocked addresses"),
        ("new_recipient", "new_recipient", "New recipients"),
        ("quiet_hours.timezone", "timezone", "Time zone"),
        ("quiet_hours.from", "from", "From"),
        ("quiet_hours.to", "to", "Until"),
        ("quiet_hours", "quiet_on", "Quiet hours"),
        ("review", "review", "Reviews"),
        ("hold.hours", "hours", "Hours"),
    ];
    let found =
        known.iter().find(|(name, ..)| path.starts_with(name)).map(|(_, field, label)| (*field, *label));
    let cap = || {
        CAPS.iter().find(|(name, ..)| path == format!("caps.{name}")).map(|(name, label, _)| (*name, *label))
    };
    let scan = || {
        let known = SCANNED.iter().find(|(name, ..)| path == format!("scan.{name}"));
        known.map(|(name, label, _)| (*name, *label))
    };
    found.or_else(cap).or_else(scan).map(|(field, label)| (field.to_owned(), label.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_describes_the_policy_that_it_shows() {
        let typed = Fields::parse(
            b"mode=known&allow=%40x.test%0D%0Aa%40y.test&block=&new_recipient=review&per_hour=5&per_day=\
              &quiet_on=on&timezone=Europe%2FBerlin&from=22%3A00&to=07%3A00&then=review&review=all&hours=24",
        );
        let policy = policy(&typed, &SendPolicy::default()).unwrap().alone();
        let shown = PolicyFields::of(&policy, "UTC");
        assert_eq!(
            (shown.mode, shown.allow.as_str(), shown.block.as_str()),
            ("known", "@x.test\na@y.test", "")
        );
        assert_eq!((shown.new_recipient, shown.review, shown.then), ("review", "all", "review"));
        assert_eq!(shown.caps.iter().map(|cap| cap.3.as_str()).collect::<Vec<_>>(), ["5", "", "", ""]);
        assert_eq!(
            (shown.timezone.as_str(), shown.from.as_str(), shown.hours.as_str()),
            ("Europe/Berlin", "22:00", "24")
        );
    }

    #[test]
    fn inputs_have_their_fields() {
        let field = |path: &str| place(path).map(|(field, _)| field);
        assert_eq!(field("recipients.allow[3]").as_deref(), Some("allow"));
        assert_eq!(field("caps.per_day").as_deref(), Some("per_day"));
        assert_eq!(field("quiet_hours.to").as_deref(), Some("to"));
        assert_eq!(field("quiet_hours").as_deref(), Some("quiet_on"));
        assert_eq!(field("scan.secrets").as_deref(), Some("secrets"));
        assert_eq!(field("hold.then"), None);
    }
}
