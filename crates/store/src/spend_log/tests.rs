use super::*;

const NODE: &str = "0123456789abcdef0123456789abcdef";

fn spent(month: i64, reads: i64) -> PeriodSpend {
    PeriodSpend { period_start: Timestamp::from_micros(month), reads }
}

#[test]
fn what_was_written_is_found_once_the_process_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let log = SpendLog::create(folder.path(), NODE).unwrap();
    let (one, two) = (WorkspaceId::from("ws_one"), WorkspaceId::from("ws_two"));
    let slots = [log.slot(&one), log.slot(&two)];
    for reads in 1..=3 {
        slots[0].write(WorkspaceSpend { credits: spent(7, reads), requests: spent(8, 2 * reads) });
    }
    assert!(SpendLog::orphaned(folder.path()).unwrap().is_empty(), "the process lives");
    drop((slots, log));
    let remains = SpendLog::orphaned(folder.path()).unwrap();
    assert_eq!(remains.len(), 1);
    assert_eq!(remains[0].node, NODE);
    let wanted = WorkspaceSpend { credits: spent(7, 3), requests: spent(8, 6) };
    assert_eq!(remains[0].figures, [(one, wanted), (two, WorkspaceSpend::default())]);
    assert!(SpendLog::orphaned(folder.path()).unwrap().is_empty(), "somebody else has it");
    for left in remains {
        left.delete().unwrap();
    }
    assert!(SpendLog::orphaned(folder.path()).unwrap().is_empty());
}

#[test]
fn a_place_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let log = SpendLog::create(folder.path(), NODE).unwrap();
    let slot = log.slot(&WorkspaceId::from("ws_with_a_long_name"));
    slot.write(WorkspaceSpend { credits: spent(7, 9), requests: spent(0, 0) });
    slot.release();
    let slot = log.slot(&WorkspaceId::from("ws_b"));
    drop((slot, log));
    let remains = SpendLog::orphaned(folder.path()).unwrap();
    assert_eq!(remains[0].figures, [(WorkspaceId::from("ws_b"), WorkspaceSpend::default())]);
}

#[test]
fn a_log_of_another_boot_or_without_a_node_is_not_valid() {
    let folder = tempfile::tempdir().unwrap();
    let log = SpendLog::create(folder.path(), NODE).unwrap();
    log.slot(&WorkspaceId::from("ws_one"))
        .write(WorkspaceSpend { credits: spent(7, 9), requests: spent(0, 0) });
    let path = log.path.clone();
    drop(log);
    let bytes = fs::read(&path).unwrap();
    let mut other = bytes.clone();
    other[8 + NAME_BYTES] ^= 1;
    for bad in [&other[..], b"", b"AMSPEND1", &bytes[..HEADER_BYTES - 1], &[0; 400]] {
        fs::write(&path, bad).unwrap();
        assert!(SpendLog::orphaned(folder.path()).unwrap().is_empty());
        assert!(!path.exists());
    }
    fs::write(&path, &bytes).unwrap();
    assert_eq!(SpendLog::orphaned(folder.path()).unwrap().len(), 1);
}

#[test]
fn a_log_that_cannot_be_written_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let log = SpendLog::create(folder.path(), NODE).unwrap();
    let path = log.path.clone();
    log.disable(&io::Error::other("a test"));
    assert!(!path.exists());
    // Later writes go nowhere and do no harm.
    log.slot(&WorkspaceId::from("ws_one")).write(WorkspaceSpend::default());
}
