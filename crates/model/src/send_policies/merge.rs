//! How a policy stands under the one above it: what it leaves out it takes from there, and it can only tighten.

use super::{
    AddressPattern, HoldRules, NewRecipientRules, NewScanRules, NewSendCaps, NewSendPolicy, RecipientMode,
    RecipientRules, ScanRules, SendCaps, SendPolicy,
};
use crate::Timestamp;

/// Where a policy is wider than the one above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFault {
    /// The field.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl PolicyFault {
    fn wider(path: impl Into<String>, above: impl std::fmt::Display) -> Self {
        let message = format!("would be wider than the policy above it, which says {above}");
        Self { path: path.into(), message }
    }
}

impl NewSendPolicy {
    /// The policy by itself: what it leaves out is as wide as can be.
    pub fn alone(&self) -> SendPolicy {
        self.under(&SendPolicy::default())
    }

    /// The policy with what it leaves out filled in from the one above it.
    ///
    /// It says what a message must satisfy, as far as one policy can: an address must also be among those that the one
    /// above allows, for which the gate asks that one.
    pub fn under(&self, above: &SendPolicy) -> SendPolicy {
        let NewScanRules { secrets, personal, other_correspondents, attachments } =
            self.scan.clone().unwrap_or_default();
        let hold = self.hold.clone().unwrap_or_default();
        SendPolicy {
            recipients: self.recipients.clone().unwrap_or_default().under(&above.recipients),
            new_recipient: self.new_recipient.unwrap_or(above.new_recipient),
            caps: self.caps.clone().unwrap_or_default().under(&above.caps),
            quiet_hours: self.quiet_hours.clone().unwrap_or_else(|| above.quiet_hours.clone()),
            scan: ScanRules {
                secrets: secrets.unwrap_or(above.scan.secrets),
                personal: personal.unwrap_or(above.scan.personal),
                other_correspondents: other_correspondents.unwrap_or(above.scan.other_correspondents),
                attachments: attachments.unwrap_or(above.scan.attachments),
            },
            review: self.review.unwrap_or(above.review),
            hold: HoldRules {
                hours: hold.hours.unwrap_or(above.hold.hours),
                then: hold.then.unwrap_or(above.hold.then),
            },
        }
    }

    /// Where it is wider than the policy above it.
    pub fn faults_under(&self, above: &SendPolicy, now: Timestamp) -> Vec<PolicyFault> {
        let mut faults = Vec::new();
        if let Some(recipients) = &self.recipients {
            faults.extend(recipients.faults_under(&above.recipients));
        }
        if self.new_recipient.is_some_and(|own| own < above.new_recipient) {
            faults.push(PolicyFault::wider("new_recipient", above.new_recipient));
        }
        if let Some(caps) = &self.caps {
            faults.extend(caps.faults_under(&above.caps));
        }
        match (&self.quiet_hours, &above.quiet_hours) {
            (Some(None), Some(quiet)) => {
                let hours = format!("{} to {} in {}", quiet.from, quiet.to, quiet.timezone);
                faults.push(PolicyFault::wider("quiet_hours", hours));
            }
            (Some(Some(own)), Some(quiet)) if own.crosses(quiet, now) => faults.push(PolicyFault {
                path: "quiet_hours".to_owned(),
                message: format!(
                    "overlap the quiet hours above them, {} to {} in {}, without containing them",
                    quiet.from, quiet.to, quiet.timezone
                ),
            }),
            _ => {}
        }
        if let Some(scan) = &self.scan {
            faults.extend(scan.faults_under(&above.scan));
        }
        if self.review.is_some_and(|own| own < above.review) {
            faults.push(PolicyFault::wider("review", above.review));
        }
        if self.hold.as_ref().and_then(|hold| hold.hours).is_some_and(|hours| hours > above.hold.hours) {
            faults.push(PolicyFault::wider("hold.hours", above.hold.hours));
        }
        faults
    }
}

impl NewRecipientRules {
    fn under(self, above: &RecipientRules) -> RecipientRules {
        let mut block = above.block.clone();
        for pattern in self.block.unwrap_or_default() {
            if !block.contains(&pattern) {
                block.push(pattern);
            }
        }
        RecipientRules {
            mode: self.mode.unwrap_or(above.mode),
            allow: self.allow.unwrap_or_else(|| above.allow.clone()),
            block,
        }
    }

    fn faults_under(&self, above: &RecipientRules) -> Vec<PolicyFault> {
        let mut faults = Vec::new();
        if self.mode.is_some_and(|own| own < above.mode) {
            faults.push(PolicyFault::wider("recipients.mode", above.mode));
        }
        if above.mode == RecipientMode::List {
            let is_allowed = |own: &AddressPattern| above.allow.iter().any(|pattern| pattern.covers(own));
            for (index, own) in self.allow.iter().flatten().enumerate() {
                if !is_allowed(own) {
                    faults.push(PolicyFault {
                        path: format!("recipients.allow[{index}]"),
                        message: "is not among the addresses that the policy above allows".to_owned(),
                    });
                }
            }
        }
        faults
    }
}

impl NewScanRules {
    fn faults_under(&self, above: &ScanRules) -> Vec<PolicyFault> {
        let rules = [
            ("secrets", self.secrets, above.secrets),
            ("personal", self.personal, above.personal),
            ("attachments", self.attachments, above.attachments),
        ];
        let wider = rules.into_iter().filter(|(_, own, above)| own.is_some_and(|own| own < *above));
        wider.map(|(name, _, above)| PolicyFault::wider(format!("scan.{name}"), above)).collect()
    }
}

impl NewSendCaps {
    fn under(&self, above: &SendCaps) -> SendCaps {
        SendCaps {
            per_hour: self.per_hour.unwrap_or(above.per_hour),
            per_day: self.per_day.unwrap_or(above.per_day),
            new_recipients_per_day: self.new_recipients_per_day.unwrap_or(above.new_recipients_per_day),
            per_recipient_per_day: self.per_recipient_per_day.unwrap_or(above.per_recipient_per_day),
        }
    }

    fn faults_under(&self, above: &SendCaps) -> Vec<PolicyFault> {
        let caps = [
            ("per_hour", self.per_hour, above.per_hour),
            ("per_day", self.per_day, above.per_day),
            ("new_recipients_per_day", self.new_recipients_per_day, above.new_recipients_per_day),
            ("per_recipient_per_day", self.per_recipient_per_day, above.per_recipient_per_day),
        ];
        let is_wider = |own: Option<i64>, above: i64| own.is_none_or(|own| own > above);
        let wider = caps.into_iter().filter_map(|(name, own, above)| {
            let (own, above) = (own?, above?);
            is_wider(own, above).then(|| PolicyFault::wider(format!("caps.{name}"), above))
        });
        wider.collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(json: Value) -> NewSendPolicy {
        serde_json::from_value(json).unwrap()
    }

    fn faults(own: Value, above: Value) -> Vec<String> {
        let now = "2026-07-14T12:00:00Z".parse().unwrap();
        policy(own).faults_under(&policy(above).alone(), now).into_iter().map(|fault| fault.path).collect()
    }

    // rules: POLICY-4
    #[test]
    fn only_fields_that_are_set_can_be_wider() {
        let above = json!({
            "recipients": { "mode": "list", "allow": ["@x.test"] }, "new_recipient": "review",
            "caps": { "per_hour": 5 }, "review": "all", "hold": { "hours": 24 }, "scan": { "secrets": "review" },
            "quiet_hours": { "timezone": "UTC", "from": "22:00", "to": "07:00" }
        });
        assert_eq!(faults(json!({}), above.clone()), Vec::<String>::new());
        let wider = json!({
            "recipients": { "mode": "open", "allow": ["a@x.test", "b@y.test", "*"] }, "new_recipient": "allow",
            "caps": { "per_hour": 6, "per_day": null }, "quiet_hours": null, "review": "none", "hold": { "hours": 25 },
            "scan": { "secrets": "off", "personal": "off" }
        });
        assert_eq!(
            faults(wider, above.clone()),
            [
                "recipients.mode",
                "recipients.allow[1]",
                "recipients.allow[2]",
                "new_recipient",
                "caps.per_hour",
                "quiet_hours",
                "scan.secrets",
                "review",
                "hold.hours"
            ]
        );
        assert_eq!(faults(json!({ "caps": { "per_hour": null } }), above.clone()), ["caps.per_hour"]);
        let narrower = json!({
            "recipients": { "mode": "list", "allow": ["a@x.test"], "block": ["*"] }, "new_recipient": "block",
            "caps": { "per_hour": 5, "per_day": 7 }, "hold": { "hours": 1 },
            "quiet_hours": { "timezone": "UTC", "from": "21:00", "to": "08:00" }
        });
        assert_eq!(faults(narrower, above), Vec::<String>::new());
    }

    // rules: POLICY-2
    #[test]
    fn what_is_left_out_comes_from_above_and_can_be_set_again() {
        let above = policy(
            json!({ "caps": { "per_day": 9 }, "recipients": { "block": ["@b.test"] }, "review": "all" }),
        );
        let shown = policy(json!({ "new_recipient": "review" })).under(&above.alone());
        let shown = serde_json::to_value(&shown).unwrap();
        assert_eq!(shown["caps"]["per_day"], 9);
        assert_eq!(shown["recipients"], json!({ "mode": "open", "allow": [], "block": ["@b.test"] }));
        assert_eq!((&shown["review"], &shown["new_recipient"]), (&json!("all"), &json!("review")));
        assert_eq!(faults(shown, serde_json::to_value(&above).unwrap()), Vec::<String>::new());
    }

    // rules: POLICY-1
    #[test]
    fn the_defaults_let_everything_leave() {
        let shown = serde_json::to_value(policy(json!({})).alone()).unwrap();
        assert_eq!(
            shown,
            json!({
                "recipients": { "mode": "open", "allow": [], "block": [] }, "new_recipient": "allow",
                "caps": {
                    "per_hour": null, "per_day": null, "new_recipients_per_day": null, "per_recipient_per_day": null
                },
                "quiet_hours": null,
                "scan": { "secrets": "off", "personal": "off", "other_correspondents": "off", "attachments": "off" },
                "review": "none", "hold": { "hours": 72, "then": "reject" }
            })
        );
    }
}
