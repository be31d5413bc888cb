//! When triagers run, without a mailbox.

use super::*;
use crate::filter::{AddressField, Mark, Party};

struct Mail;

impl FilterSubject for Mail {
    fn parties(&self, field: AddressField) -> impl Iterator<Item = Party<'_>> {
        let ann = Party { name: "Ann", address: "ann@acme.com" };
        Some(ann).filter(|_| field == AddressField::From).into_iter()
    }
    fn subject(&self) -> &'static str {
        "Invoice"
    }
    fn body(&self) -> &'static str {
        "Please pay."
    }
    fn category(&self) -> Option<&str> {
        None
    }
    fn labels(&self) -> impl Iterator<Item = &str> {
        std::iter::empty()
    }
    fn is(&self, _: Mark) -> bool {
        false
    }
    fn date(&self) -> i64 {
        0
    }
    fn size(&self) -> u64 {
        10
    }
}

fn occasion(kinds: &[SourceKind]) -> Occasion {
    Occasion { kinds: kinds.to_vec(), in_inbox: true, domains: vec!["acme.com".to_owned()] }
}

fn trigger(kind: TriggerKind) -> Trigger {
    Trigger { kind, ..Trigger::usual() }
}

/// rules: TRIAGE-3
#[test]
fn a_trigger_fires_on_its_kind_within_its_domains_and_filter() {
    use SourceKind as Source;
    for (kind, sources) in [
        (TriggerKind::MailReceived, vec![Source::MailReceived]),
        (TriggerKind::MailSent, vec![Source::MailSent]),
        (TriggerKind::MailReceivedOrSent, vec![Source::MailReceived, Source::MailSent]),
        (TriggerKind::CalendarCreated, vec![Source::CalendarCreated]),
        (TriggerKind::CalendarUpdated, vec![Source::CalendarUpdated]),
        (TriggerKind::CalendarCanceled, vec![Source::CalendarCanceled]),
    ] {
        for source in [
            Source::MailReceived,
            Source::MailSent,
            Source::CalendarCreated,
            Source::CalendarUpdated,
            Source::CalendarCanceled,
            Source::Manual,
        ] {
            let fired = trigger(kind).fires(&occasion(&[source]), &Mail);
            assert_eq!(fired, sources.contains(&source).then_some(source), "{kind} {source}");
        }
    }
    let received = occasion(&[Source::CalendarCreated, Source::MailReceived]);
    let usual = trigger(TriggerKind::MailReceived);
    for (changed, fires) in [
        (Trigger { enabled: false, ..usual.clone() }, false),
        (Trigger { mail_domains: vec!["acme.com".to_owned()], ..usual.clone() }, true),
        (Trigger { mail_domains: vec!["other.com".to_owned()], ..usual.clone() }, false),
        (Trigger { filter: "from:@acme.com and subject:invoice".to_owned(), ..usual.clone() }, true),
        (Trigger { filter: "not subject:invoice".to_owned(), ..usual.clone() }, false),
    ] {
        assert_eq!(changed.fires(&received, &Mail).is_some(), fires, "{changed:?}");
    }
    let spam = Occasion { in_inbox: false, ..received };
    assert_eq!(usual.fires(&spam, &Mail), None);
    assert!(Trigger { only_inbox: false, ..usual }.fires(&spam, &Mail).is_some());
}

/// rules: TRIAGE-6
#[test]
fn the_default_triager_drafts_where_the_mailbox_asks_for_it_and_only_there() {
    let mailbox = MailboxId::from("mbx_01h8xgjy4n7r2v6c0d5t9kqwez");
    let first = Triager::first_of(&mailbox, Timestamp::from_micros(0));
    let arrival = occasion(&[SourceKind::MailReceived]);
    assert!(first.clone().at_work(true).fires(&arrival, &Mail).is_some());
    assert_eq!(first.clone().at_work(false).fires(&arrival, &Mail), None);
    let bare = Triager { triggers: Vec::new(), tasks: Vec::new(), ..first.clone() };
    assert!(bare.at_work(true).fires(&arrival, &Mail).is_some());
    let mut off = first.clone();
    off.tasks[0].enabled = false;
    assert_eq!(off.at_work(true).fires(&arrival, &Mail), None, "its own list comes first");
    let own = Triager { is_default: false, ..first };
    assert!(own.at_work(false).does(TriagerTaskKind::DraftResponse), "others do what their lists say");
}
