//! Senders on their way out and back, and those that somebody else made.

use super::{Srs, SrsError};

/// Seconds of November 2026.
const NOW: i64 = 1_793_620_800;
const DAY: i64 = 86_400;

fn ours() -> Srs {
    Srs::new("us.test", &[b"secret"]).unwrap()
}

#[test]
fn a_sender_goes_out_and_comes_back() {
    for sender in [
        "ann@example.com",
        "Ann.B+tag=x@example.com",
        "a=b==c@example.org",
        "jürgen@example.com",
        "SRS@a.test",
    ] {
        let rewritten = ours().forward(sender, NOW).unwrap();
        assert!(rewritten.starts_with("SRS0=") && rewritten.ends_with("@us.test"), "{rewritten}");
        assert_eq!(ours().reverse(&rewritten, NOW).unwrap(), sender);
        // Some servers change the case of letters.
        assert_eq!(ours().reverse(&rewritten.to_lowercase(), NOW).unwrap(), sender.to_lowercase());
    }
    assert_eq!(ours().forward("ann@US.test", NOW).unwrap(), "ann@US.test");
}

#[test]
fn the_way_back_leads_through_all_forwarders() {
    let (first, second, third) =
        (Srs::new("one.test", &[b"1"]).unwrap(), Srs::new("two.test", &[b"2"]).unwrap(), ours());
    let once = first.forward("ann@a.test", NOW).unwrap();
    let twice = second.forward(&once, NOW).unwrap();
    assert!(twice.starts_with("SRS1=") && twice.contains("=one.test=="), "{twice}");
    let thrice = third.forward(&twice, NOW).unwrap();
    assert!(thrice.contains("=one.test==") && !thrice.contains("two.test"), "{thrice}");
    assert_eq!(third.reverse(&thrice, NOW).unwrap(), once);
    assert_eq!(second.reverse(&twice, NOW).unwrap(), once);
    assert_eq!(first.reverse(&once, NOW).unwrap(), "ann@a.test");
}

#[test]
fn only_our_own_addresses_are_turned_back() {
    let rewritten = ours().forward("ann@example.com", NOW).unwrap();
    let other = Srs::new("us.test", &[b"other"]).unwrap();
    assert_eq!(other.reverse(&rewritten, NOW), Err(SrsError::Forged));
    assert_eq!(ours().reverse(&rewritten.replace("ann", "eve"), NOW), Err(SrsError::Forged));
    assert_eq!(ours().reverse(&rewritten.replace("example.com", "example.org"), NOW), Err(SrsError::Forged));
    assert_eq!(ours().reverse("SRS0=aaaaaa=aa=victim.test=a@us.test", NOW), Err(SrsError::Forged));
    assert_eq!(ours().reverse("SRS1=aaaaaa=victim.test==x@us.test", NOW), Err(SrsError::Forged));
    assert_eq!(ours().reverse("SRS0=x@us.test", NOW), Err(SrsError::Forged));
    assert_eq!(ours().reverse("ann@us.test", NOW), Err(SrsError::NotRewritten));
    assert_eq!(ours().reverse(&rewritten.replace("us.test", "them.test"), NOW), Err(SrsError::NotRewritten));
    assert_eq!(ours().reverse("nothing", NOW), Err(SrsError::Address));
}

#[test]
fn addresses_grow_old() {
    let rewritten = ours().forward("ann@example.com", NOW).unwrap();
    assert!(ours().reverse(&rewritten, NOW + 21 * DAY).is_ok());
    assert_eq!(ours().reverse(&rewritten, NOW + 22 * DAY), Err(SrsError::Expired));
    assert_eq!(ours().reverse(&rewritten, NOW + 600 * DAY), Err(SrsError::Expired));
    assert!(ours().reverse(&rewritten, NOW - DAY).is_ok());
    assert_eq!(ours().reverse(&rewritten, NOW - 3 * DAY), Err(SrsError::Expired));
}

#[test]
fn an_old_key_still_verifies() {
    let rewritten = ours().forward("ann@example.com", NOW).unwrap();
    let rotated = Srs::new("us.test", &[b"new", b"secret"]).unwrap();
    assert_eq!(rotated.reverse(&rewritten, NOW).unwrap(), "ann@example.com");
    assert_eq!(ours().reverse(&rotated.forward("ann@example.com", NOW).unwrap(), NOW), Err(SrsError::Forged));
    assert!(Srs::new("us.test", &[]).is_none());
    assert!(Srs::new("not a domain", &[b"k"]).is_none());
}

#[test]
fn what_does_not_fit_is_said() {
    let long = format!("{}@example.com", "a".repeat(60));
    assert_eq!(ours().forward(&long, NOW), Err(SrsError::TooLong));
    assert_eq!(ours().forward("nobody", NOW), Err(SrsError::Address));
}
