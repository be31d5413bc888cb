//! What the gate decides, policy by policy, and that more policies never let more out.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{findings::FindingKind, send_policies::NewSendPolicy};

fn policy(json: Value) -> SendPolicy {
    serde_json::from_value::<NewSendPolicy>(json).unwrap().alone()
}

fn recipient(address: &str, was_sent_to: bool, was_received_from: bool) -> GateRecipient {
    GateRecipient {
        path: format!("to {address}"),
        address: address.to_owned(),
        was_sent_to,
        was_received_from,
        is_suppressed: false,
    }
}

fn noon() -> Timestamp {
    "2026-07-14T12:00:00Z".parse().unwrap()
}

fn verdict(policies: &[SendPolicy], recipients: &[GateRecipient], review: ReviewState) -> String {
    let message = GateMessage { id: "m", recipients, capped_until: None, review, content: None, now: noon() };
    let codes =
        |found: &[PolicyFinding]| found.iter().map(|one| one.code.as_str()).collect::<Vec<_>>().join(" ");
    match decide(policies, &message) {
        Verdict::Send(_) => "send".to_owned(),
        Verdict::Schedule(at) => format!("schedule {at}"),
        Verdict::Review(found) => format!("review {}", codes(&found)),
        Verdict::Block(found) => format!("block {}", codes(&found)),
        Verdict::Capped(_) => "capped".to_owned(),
        Verdict::Suppressed(found) => format!("suppressed {}", codes(&found)),
    }
}

fn one(policy_json: Value, recipient: &GateRecipient) -> String {
    verdict(&[policy(policy_json)], std::slice::from_ref(recipient), ReviewState::Possible)
}

// rules: POLICY-1, POLICY-5
#[test]
fn modes_from_wide_to_narrow() {
    let (stranger, sent) = (recipient("a@x.test", false, false), recipient("a@x.test", true, false));
    let wrote = recipient("a@x.test", false, true);
    let mode = |mode: &str, allow: &[&str]| json!({ "recipients": { "mode": mode, "allow": allow } });
    for (name, verdicts) in [
        ("open", ["send", "send", "send"]),
        ("correspondents", ["block recipient_blocked", "send", "send"]),
        ("known", ["block recipient_blocked", "send", "block recipient_blocked"]),
        ("list", ["block recipient_blocked"; 3]),
    ] {
        assert_eq!([&stranger, &sent, &wrote].map(|who| one(mode(name, &[]), who)), verdicts, "{name}");
        assert_eq!(
            [&stranger, &sent, &wrote].map(|who| one(mode(name, &["@x.test"]), who)),
            ["send"; 3],
            "{name}"
        );
    }
    let blocked = json!({ "recipients": { "allow": ["a@x.test"], "block": ["@x.test"] } });
    assert_eq!(one(blocked, &sent), "block recipient_blocked");
}

// rules: POLICY-6
#[test]
fn a_new_recipient_is_one_that_nobody_sent_to_or_added() {
    for (rule, expected) in
        [("review", "review new_recipient"), ("block", "block new_recipient"), ("allow", "send")]
    {
        let rules = json!({ "new_recipient": rule });
        assert_eq!(one(rules.clone(), &recipient("a@x.test", false, true)), expected);
        assert_eq!(one(rules, &recipient("a@x.test", true, false)), "send");
        let added = json!({ "new_recipient": rule, "recipients": { "allow": ["a@x.test"] } });
        assert_eq!(one(added, &recipient("a@x.test", false, false)), "send");
    }
}

// rules: POLICY-8, POLICY-9
#[test]
fn reviews_come_before_quiet_hours_and_an_approval_answers_only_them() {
    use ReviewState::{Approved, Impossible, Possible};
    let known = [recipient("a@x.test", true, false)];
    let quiet =
        |from: &str, to: &str, then: &str| json!({ "timezone": "UTC", "from": from, "to": to, "then": then });
    let all = policy(json!({ "review": "all" }));
    let evening = policy(json!({ "quiet_hours": quiet("11:00", "13:00", "schedule") }));
    let asks = policy(json!({ "quiet_hours": quiet("11:00", "13:00", "review") }));
    let later = policy(json!({ "quiet_hours": quiet("13:00", "14:30", "schedule") }));
    let blocks = policy(json!({ "recipients": { "block": ["*"] } }));
    for (policies, review, expected) in [
        (vec![&all, &evening], Possible, "review review_all"),
        (vec![&all, &evening], Approved, "schedule 2026-07-14T13:00:00.000Z"),
        (vec![&evening, &later], Possible, "schedule 2026-07-14T14:30:00.000Z"),
        (vec![&all, &asks], Possible, "review quiet_hours review_all"),
        (vec![&all, &asks], Approved, "send"),
        (vec![&all, &asks], Impossible, "block review_needed"),
        (vec![&all, &blocks], Approved, "block recipient_blocked"),
    ] {
        let policies: Vec<SendPolicy> = policies.into_iter().cloned().collect();
        assert_eq!(verdict(&policies, &known, review), expected);
    }
}

// rules: POLICY-10
#[test]
fn a_clearance_is_for_one_message_and_its_recipients() {
    let recipients = [recipient("a@x.test", true, false)];
    let message = GateMessage {
        id: "m",
        recipients: &recipients,
        capped_until: None,
        review: ReviewState::Possible,
        content: None,
        now: noon(),
    };
    let Verdict::Send(clearance) = decide(&[], &message) else { panic!("it may leave") };
    assert!(clearance.is_for("m", ["A@x.test"].into_iter()));
    assert!(!clearance.is_for("n", ["a@x.test"].into_iter()));
    assert!(!clearance.is_for("m", ["a@x.test", "b@x.test"].into_iter()));
    assert!(Clearance::of_service("m", OutboundKind::Email).is_none());
    assert!(Clearance::of_returned_report("m", OutboundKind::Forward, Some("a@x.test")).is_none());
}

// rules: LEAK-1, LEAK-4, LEAK-5
#[test]
fn findings_are_refused_or_reviewed_as_the_strictest_policy_says() {
    use ReviewState::{Approved, Impossible, Possible};
    let finding =
        |kind, place: &str| ReviewFinding { kind, place: place.to_owned(), masked: "…".to_owned() };
    let found = [finding(FindingKind::Secret, "text"), finding(FindingKind::Personal, "attachments[0]")];
    let known = [recipient("a@x.test", true, true)];
    let judge = |rules: Value, content: Option<&[ReviewFinding]>, review| {
        let policies =
            [policy(json!({ "scan": rules })), policy(json!({ "scan": { "personal": "review" } }))];
        let message =
            GateMessage { id: "m", recipients: &known, capped_until: None, review, content, now: noon() };
        match decide(&policies, &message) {
            Verdict::Send(_) => "send".to_owned(),
            Verdict::Review(found) => format!("review {found:?}"),
            Verdict::Block(found) => format!("block {found:?}"),
            other => panic!("{other:?}"),
        }
    };
    let off = json!({});
    assert!(judge(off.clone(), Some(&found), Possible).starts_with("review"));
    assert_eq!(judge(off.clone(), Some(&found[..1]), Possible), "send");
    assert!(judge(json!({ "secrets": "block" }), Some(&found), Possible).contains("\"text\""));
    assert!(judge(json!({ "secrets": "block" }), Some(&found), Approved).starts_with("block"));
    assert_eq!(judge(json!({ "secrets": "review" }), Some(&found), Approved), "send");
    assert!(judge(json!({ "secrets": "review" }), Some(&found), Impossible).starts_with("block"));
    // What was not searched in time is never let through unseen.
    assert!(judge(off.clone(), None, Possible).contains("ScanFailed"));
    assert!(judge(off, None, Impossible).starts_with("block"));
}

// rules: SUPPRESS-4
#[test]
fn suppressed_recipients_are_left_out_and_nobody_else() {
    let suppressed = GateRecipient { is_suppressed: true, ..recipient("no@x.test", false, false) };
    let known = recipient("a@x.test", true, false);
    let policies = [policy(json!({ "new_recipient": "block" }))];
    // A policy has nothing to say about an address that the message is not sent to.
    let both = [suppressed.clone(), known];
    let message = GateMessage {
        id: "m",
        recipients: &both,
        capped_until: None,
        review: ReviewState::Possible,
        content: None,
        now: noon(),
    };
    let Verdict::Send(clearance) = decide(&policies, &message) else { panic!("it is sent to the other") };
    assert!(clearance.is_for("m", ["a@x.test"].into_iter()));
    assert!(!clearance.is_for("m", ["no@x.test"].into_iter()));
    assert_eq!(verdict(&policies, &[suppressed], ReviewState::Approved), "suppressed recipient_suppressed");
}

fn any_policy() -> impl Strategy<Value = SendPolicy> {
    let mode = prop::sample::select(vec!["open", "correspondents", "known", "list"]);
    let list = || {
        prop::collection::vec(
            prop::sample::select(vec!["a@x.test", "@x.test", "@*.test", "*", "b@y.test"]),
            0..3,
        )
    };
    let rule = prop::sample::select(vec!["allow", "review", "block"]);
    let review = prop::sample::select(vec!["none", "matched", "all"]);
    let quiet = prop::sample::select(vec![
        Value::Null,
        json!({ "timezone": "UTC", "from": "11:00", "to": "13:00", "then": "schedule" }),
        json!({ "timezone": "UTC", "from": "11:30", "to": "12:30", "then": "review" }),
        json!({ "timezone": "UTC", "from": "22:00", "to": "07:00", "then": "review" }),
    ]);
    (mode, list(), list(), rule, review, quiet).prop_map(|(mode, allow, block, rule, review, quiet)| {
        policy(json!({
            "recipients": { "mode": mode, "allow": allow, "block": block }, "new_recipient": rule, "review": review,
            "quiet_hours": quiet
        }))
    })
}

fn any_recipient() -> impl Strategy<Value = GateRecipient> {
    let address = prop::sample::select(vec!["a@x.test", "b@x.test", "b@y.test", "c@s.x.test"]);
    (address, any::<bool>(), any::<bool>())
        .prop_map(|(address, sent, received)| recipient(address, sent, received))
}

/// How little a verdict lets out.
fn strictness(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Send(_) => 0,
        Verdict::Schedule(_) => 1,
        Verdict::Review(_) => 2,
        Verdict::Capped(_) => 3,
        Verdict::Block(_) => 4,
        Verdict::Suppressed(_) => 5,
    }
}

proptest! {
    // rules: POLICY-4
    #[test]
    fn another_policy_or_recipient_never_lets_more_out(
        policies in prop::collection::vec(any_policy(), 1..4),
        recipients in prop::collection::vec(any_recipient(), 1..4),
        approved in any::<bool>(),
    ) {
        let review = if approved { ReviewState::Approved } else { ReviewState::Possible };
        let judge = |policies: &[SendPolicy], recipients: &[GateRecipient]| {
            strictness(&decide(policies, &GateMessage { id: "m", recipients, capped_until: None, review, content: None, now: noon() }))
        };
        let whole = judge(&policies, &recipients);
        prop_assert!(judge(&policies[1..], &recipients) <= whole);
        prop_assert!(judge(&policies, &recipients[1..]) <= whole);
        // The strictest policy alone decides, but for quiet hours that follow each other.
        let strictest = policies.iter().map(|one| judge(std::slice::from_ref(one), &recipients)).max();
        prop_assert_eq!(strictest, Some(whole));
    }
}
