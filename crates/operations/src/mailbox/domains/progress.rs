//! How a domain gets from claimed to proven, and how it is lost again.
//!
//! Records take time to spread, so a claim waits for its proof for a week. A verified domain whose records vanish is kept
//! for three days, since mistakes in DNS are mended; a person who asks gets the truth of the moment. A domain that is not
//! proven can be claimed and proven by another workspace, and by the same one as long as nobody else did.

use model::{Timestamp, domains::DomainStatus};
use store::domains::DomainRecord;

use super::records::DnsCheck;

/// How long a domain may wait for its proof.
const CLAIM_SECONDS: i64 = 7 * 24 * 3600;
/// How long a verified domain may lack a record.
const PENDING_TIMEOUT_SECONDS: i64 = 3 * 24 * 3600;
/// The shortest and the longest pause between two looks at a pending domain.
const SHORTEST_PAUSE: i64 = 60;
const MAX_PAUSE_SECONDS: i64 = 3600;
/// The pause between two looks at a verified domain, and at one that is lost.
const VERIFIED_PAUSE: i64 = 6 * 3600;
const LOST_PAUSE: i64 = 24 * 3600;

/// Who wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// Somebody who wants the truth of this moment.
    Person,
    /// The clock, which is patient.
    Clock,
}

/// When a new domain is looked at first.
pub(super) fn first_check(now: Timestamp) -> Timestamp {
    now.plus_seconds(SHORTEST_PAUSE)
}

/// Draws the conclusion from a look.
pub(super) fn conclude(record: &mut DomainRecord, look: DnsCheck, asker: Asker, now: Timestamp) {
    if look.proves() {
        if record.status != DomainStatus::Verified {
            record.verified_at = Some(now);
        }
        record.status = DomainStatus::Verified;
        record.failing_since = None;
    } else if look.conclusive {
        lack(record, asker, now);
    }
    record.last_error = look.fault;
    record.found.extend(look.found);
    record.next_check_at = now.plus_seconds(pause(record, now));
    record.updated_at = now;
}

/// Something required is not there, for sure.
fn lack(record: &mut DomainRecord, asker: Asker, now: Timestamp) {
    let since = |start: Timestamp| (now.as_micros() - start.as_micros()) / 1_000_000;
    match record.status {
        DomainStatus::Pending if since(record.created_at) >= CLAIM_SECONDS => {
            record.status = DomainStatus::Failed;
        }
        DomainStatus::Verified => {
            let start = *record.failing_since.get_or_insert(now);
            if asker == Asker::Person || since(start) >= PENDING_TIMEOUT_SECONDS {
                record.status = DomainStatus::Failed;
                record.verified_at = None;
                record.failing_since = None;
            }
        }
        DomainStatus::Pending | DomainStatus::Failed => {}
    }
}

/// Another workspace has proven the domain to be its own.
pub(super) fn lose(record: &mut DomainRecord, now: Timestamp) {
    let ended = *record.ended_at.get_or_insert(now);
    record.status = DomainStatus::Failed;
    record.verified_at = None;
    record.failing_since = None;
    record.last_error = Some("Another workspace has this domain now.".to_owned());
    record.next_check_at = now.plus_seconds(LOST_PAUSE);
    record.updated_at = ended;
}

/// Seconds until the next look. Those at a pending domain become rarer with its age.
fn pause(record: &DomainRecord, now: Timestamp) -> i64 {
    let age = (now.as_micros() - record.created_at.as_micros()) / 1_000_000;
    match record.status {
        DomainStatus::Pending => (age / 4).clamp(SHORTEST_PAUSE, MAX_PAUSE_SECONDS),
        DomainStatus::Verified if record.failing_since.is_some() => MAX_PAUSE_SECONDS,
        DomainStatus::Verified => VERIFIED_PAUSE,
        DomainStatus::Failed => LOST_PAUSE,
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

    fn look(fault: Option<&str>, conclusive: bool) -> DnsCheck {
        DnsCheck { found: RecordStatuses::new(), fault: fault.map(ToOwned::to_owned), conclusive }
    }

    // rules: DOMAIN-4, DOMAIN-11
    #[test]
    fn claims_wait_a_week_and_verified_domains_three_days() {
        use DomainStatus::{Failed, Pending, Verified};
        let mut domain = record(Pending);
        conclude(&mut domain, look(Some("x"), true), Asker::Clock, at(10));
        assert_eq!((domain.status, domain.next_check_at), (Pending, at(70)));
        conclude(&mut domain, look(Some("x"), true), Asker::Person, at(40 * HOUR));
        assert_eq!((domain.status, domain.next_check_at), (Pending, at(41 * HOUR)));
        // Name servers that do not answer prove nothing, in either direction.
        conclude(&mut domain, look(Some("x"), false), Asker::Clock, at(8 * 24 * HOUR));
        assert_eq!(domain.status, Pending);
        conclude(&mut domain, look(Some("x"), true), Asker::Clock, at(8 * 24 * HOUR));
        assert_eq!(domain.status, Failed);
        conclude(&mut domain, look(None, true), Asker::Clock, at(9 * 24 * HOUR));
        assert_eq!((domain.status, domain.verified_at), (Verified, Some(at(9 * 24 * HOUR))));
        assert_eq!(domain.last_error, None);

        let gone = at(10 * 24 * HOUR);
        conclude(&mut domain, look(Some("x"), true), Asker::Clock, gone);
        assert_eq!((domain.status, domain.failing_since), (Verified, Some(gone)));
        conclude(&mut domain, look(None, true), Asker::Clock, gone.plus_seconds(HOUR));
        assert_eq!((domain.status, domain.failing_since), (Verified, None));
        assert_eq!(domain.verified_at, Some(at(9 * 24 * HOUR)), "it was verified all the time");
        conclude(&mut domain, look(Some("x"), true), Asker::Clock, gone.plus_seconds(2 * HOUR));
        conclude(&mut domain, look(Some("x"), false), Asker::Clock, gone.plus_seconds(75 * HOUR));
        assert_eq!(domain.status, Verified);
        conclude(&mut domain, look(Some("x"), true), Asker::Clock, gone.plus_seconds(75 * HOUR));
        assert_eq!((domain.status, domain.verified_at), (Failed, None));

        let mut domain = record(Verified);
        conclude(&mut domain, look(Some("x"), true), Asker::Person, at(10));
        assert_eq!(domain.status, Failed, "a person is told the truth");
    }
}
