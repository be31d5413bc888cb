//! The states of a custom domain: pending, verified, failed.
//!
//! DNS records take time to spread, so a claim stays pending for a week. A verified domain whose records disappear
//! stays verified for three days, since DNS mistakes get fixed; a check by a caller gives the current result. A domain
//! that is not verified can be claimed and verified by another workspace, and again by the same one as long as no other
//! did.

use model::{Timestamp, domains::DomainStatus};
use store::domains::DomainRecord;

use super::records::DnsCheck;

/// How long a domain may be pending.
const CLAIM_SECONDS: i64 = 7 * 24 * 3600;
/// How long a verified domain may lack a record.
const PENDING_TIMEOUT_SECONDS: i64 = 3 * 24 * 3600;
/// The minimum and maximum pause between two checks of a pending domain.
const MIN_PAUSE_SECONDS: i64 = 60;
const MAX_PAUSE_SECONDS: i64 = 3600;
/// The pause between two checks of a verified domain, and of a failed one.
const VERIFIED_PAUSE_SECONDS: i64 = 6 * 3600;
const LOST_PAUSE_SECONDS: i64 = 24 * 3600;

/// What triggered a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckTrigger {
    /// A caller, who gets the current result.
    Caller,
    /// The schedule, which tolerates temporary failures.
    Schedule,
}

/// The time of a new domain's first check.
pub(super) fn first_check(now: Timestamp) -> Timestamp {
    now.plus_seconds(MIN_PAUSE_SECONDS)
}

/// Updates a domain by the result of a check.
pub(super) fn apply_check(record: &mut DomainRecord, check: DnsCheck, trigger: CheckTrigger, now: Timestamp) {
    if check.proves() {
        if record.status != DomainStatus::Verified {
            record.verified_at = Some(now);
        }
        record.status = DomainStatus::Verified;
        record.failing_since = None;
    } else if check.conclusive {
        apply_missing(record, trigger, now);
    }
    record.last_error = check.fault;
    record.found.extend(check.found);
    record.next_check_at = now.plus_seconds(pause(record, now));
    record.updated_at = now;
}

/// A required record is definitely missing.
fn apply_missing(record: &mut DomainRecord, trigger: CheckTrigger, now: Timestamp) {
    let since = |start: Timestamp| (now.as_micros() - start.as_micros()) / 1_000_000;
    match record.status {
        DomainStatus::Pending if since(record.created_at) >= CLAIM_SECONDS => {
            record.status = DomainStatus::Failed;
        }
        DomainStatus::Verified => {
            let start = *record.failing_since.get_or_insert(now);
            if trigger == CheckTrigger::Caller || since(start) >= PENDING_TIMEOUT_SECONDS {
                record.status = DomainStatus::Failed;
                record.verified_at = None;
                record.failing_since = None;
            }
        }
        DomainStatus::Pending | DomainStatus::Failed => {}
    }
}

/// Another workspace has verified the domain.
pub(super) fn apply_loss(record: &mut DomainRecord, now: Timestamp) {
    let ended = *record.ended_at.get_or_insert(now);
    record.status = DomainStatus::Failed;
    record.verified_at = None;
    record.failing_since = None;
    record.last_error = Some("Another workspace has this domain now.".to_owned());
    record.next_check_at = now.plus_seconds(LOST_PAUSE_SECONDS);
    record.updated_at = ended;
}

/// Seconds until the next check. A pending domain is checked less often with its age.
fn pause(record: &DomainRecord, now: Timestamp) -> i64 {
    let age = (now.as_micros() - record.created_at.as_micros()) / 1_000_000;
    match record.status {
        DomainStatus::Pending => (age / 4).clamp(MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS),
        DomainStatus::Verified if record.failing_since.is_some() => MAX_PAUSE_SECONDS,
        DomainStatus::Verified => VERIFIED_PAUSE_SECONDS,
        DomainStatus::Failed => LOST_PAUSE_SECONDS,
    }
}

#[cfg(test)]
mod tests {
    use store::domains::RecordStatuses;

    use super::*;

    const HOUR: i64 = 3600;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn record(status: DomainStatus) -> DomainRecord {
        DomainRecord {
            id: "dom_1".into(),
            workspace_id: "ws_1".into(),
            domain: "example.com".to_owned(),
            status,
            token: String::new(),
            found: RecordStatuses::new(),
            last_error: None,
            verified_at: None,
            failing_since: None,
            next_check_at: at(0),
            created_at: at(0),
            updated_at: at(0),
            ended_at: None,
        }
    }

    fn check(fault: Option<&str>, conclusive: bool) -> DnsCheck {
        DnsCheck { found: RecordStatuses::new(), fault: fault.map(ToOwned::to_owned), conclusive }
    }

    // rules: DOMAIN-4, DOMAIN-11
    #[test]
    fn claims_wait_a_week_and_verified_domains_three_days() {
        use DomainStatus::{Failed, Pending, Verified};
        let mut domain = record(Pending);
        apply_check(&mut domain, check(Some("x"), true), CheckTrigger::Schedule, at(10));
        assert_eq!((domain.status, domain.next_check_at), (Pending, at(70)));
        apply_check(&mut domain, check(Some("x"), true), CheckTrigger::Caller, at(40 * HOUR));
        assert_eq!((domain.status, domain.next_check_at), (Pending, at(41 * HOUR)));
        // An unavailable name server proves nothing, in either direction.
        apply_check(&mut domain, check(Some("x"), false), CheckTrigger::Schedule, at(8 * 24 * HOUR));
        assert_eq!(domain.status, Pending);
        apply_check(&mut domain, check(Some("x"), true), CheckTrigger::Schedule, at(8 * 24 * HOUR));
        assert_eq!(domain.status, Failed);
        apply_check(&mut domain, check(None, true), CheckTrigger::Schedule, at(9 * 24 * HOUR));
        assert_eq!((domain.status, domain.verified_at), (Verified, Some(at(9 * 24 * HOUR))));
        assert_eq!(domain.last_error, None);

        let missing_since = at(10 * 24 * HOUR);
        apply_check(&mut domain, check(Some("x"), true), CheckTrigger::Schedule, missing_since);
        assert_eq!((domain.status, domain.failing_since), (Verified, Some(missing_since)));
        apply_check(&mut domain, check(None, true), CheckTrigger::Schedule, missing_since.plus_seconds(HOUR));
        assert_eq!((domain.status, domain.failing_since), (Verified, None));
        assert_eq!(domain.verified_at, Some(at(9 * 24 * HOUR)), "it was verified all the time");
        apply_check(
            &mut domain,
            check(Some("x"), true),
            CheckTrigger::Schedule,
            missing_since.plus_seconds(2 * HOUR),
        );
        apply_check(
            &mut domain,
            check(Some("x"), false),
            CheckTrigger::Schedule,
            missing_since.plus_seconds(75 * HOUR),
        );
        assert_eq!(domain.status, Verified);
        apply_check(
            &mut domain,
            check(Some("x"), true),
            CheckTrigger::Schedule,
            missing_since.plus_seconds(75 * HOUR),
        );
        assert_eq!((domain.status, domain.verified_at), (Failed, None));

        let mut domain = record(Verified);
        apply_check(&mut domain, check(Some("x"), true), CheckTrigger::Caller, at(10));
        assert_eq!(domain.status, Failed, "a person is told the truth");
    }
}
