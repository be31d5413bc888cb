//! The options of send policies: the floor that all messages must satisfy, and how reviews go.

use std::time::Duration;

use model::{
    send_policies::{
        AddressPattern, HoldOutcome, HoldRules, QuietAction, QuietHours, RecipientMode, RecipientRules,
        ReviewMode, RuleAction, ScanAction, ScanRules, SendCaps, SendPolicy,
    },
    workspaces::is_timezone,
};
use operations::SendPolicySettings;
use toml::Value;

use super::Reader;

impl Reader<'_> {
    pub(super) fn send_policy(&mut self) -> SendPolicySettings {
        let hold_seconds = self.number("send_policy.hold_seconds", 0..=30 * 86_400);
        SendPolicySettings {
            floor: self.send_policy_floor(),
            hold_seconds: (hold_seconds > 0).then_some(hold_seconds),
            undo_seconds: self.number("send_policy.undo_seconds", 0..=3600),
            scan_timeout: Some(Duration::from_millis(
                u64::try_from(self.number("send_policy.scan_milliseconds", 1..=60_000)).unwrap_or_default(),
            )),
            second_person: self.flag("review.second_person"),
        }
    }

    fn send_policy_floor(&mut self) -> SendPolicy {
        self.choice("send_policy.scan.other_correspondents", &["off"]);
        let mut scan = |kind: &str| {
            let action = self.parsed(&format!("send_policy.scan.{kind}"), str::parse::<ScanAction>);
            action.unwrap_or_default()
        };
        let scan = ScanRules {
            secrets: scan("secrets"),
            personal: scan("personal"),
            attachments: scan("attachments"),
            ..ScanRules::default()
        };
        self.choice("send_policy.hold.then", &[HoldOutcome::Reject.as_str()]);
        let mode = self.parsed("send_policy.recipients.mode", str::parse::<RecipientMode>);
        let new_recipient = self.parsed("send_policy.new_recipient", str::parse::<RuleAction>);
        let review = self.parsed("send_policy.review", str::parse::<ReviewMode>);
        SendPolicy {
            recipients: RecipientRules {
                mode: mode.unwrap_or_default(),
                allow: self.patterns("send_policy.recipients.allow"),
                block: self.patterns("send_policy.recipients.block"),
            },
            new_recipient: new_recipient.unwrap_or_default(),
            caps: SendCaps {
                per_hour: self.cap("send_policy.caps.per_hour"),
                per_day: self.cap("send_policy.caps.per_day"),
                new_recipients_per_day: self.cap("send_policy.caps.new_recipients_per_day"),
                per_recipient_per_day: self.cap("send_policy.caps.per_recipient_per_day"),
            },
            quiet_hours: self.quiet_hours(),
            scan,
            review: review.unwrap_or_default(),
            hold: HoldRules { hours: self.number("send_policy.hold.hours", 1..=720), ..HoldRules::default() },
        }
    }

    fn patterns(&mut self, key: &str) -> Vec<AddressPattern> {
        let texts = self.list(key);
        let mut patterns = Vec::with_capacity(texts.len());
        for text in texts {
            match text.parse() {
                Ok(pattern) => patterns.push(pattern),
                Err(error) => self.complain(key, format!("{error}, found {text:?}")),
            }
        }
        patterns
    }

    /// A cap; none for "unlimited".
    fn cap(&mut self, key: &str) -> Option<i64> {
        let cap = self.typed(key, "a whole number or \"unlimited\"", |value| match value {
            Value::Integer(number) if *number >= 0 => Some(Some(*number)),
            Value::String(text) if text == "unlimited" => Some(None),
            _ => None,
        });
        cap.flatten()
    }

    fn quiet_hours(&mut self) -> Option<QuietHours> {
        let from = self.optional("send_policy.quiet_hours.from", str::parse);
        let then = self.parsed("send_policy.quiet_hours.then", str::parse::<QuietAction>);
        let timezone = self.text("send_policy.quiet_hours.timezone").to_owned();
        if !is_timezone(&timezone) {
            self.complain("send_policy.quiet_hours.timezone", "unknown time zone: use an IANA name");
        }
        let from = from?;
        let to = self.parsed("send_policy.quiet_hours.to", str::parse)?;
        if from == to {
            self.complain("send_policy.quiet_hours.to", "must be another time than `from`");
        }
        Some(QuietHours { timezone, from, to, then: then? })
    }
}
