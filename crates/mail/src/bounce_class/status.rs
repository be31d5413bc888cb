//! The classes of the enhanced status codes, as registered (RFC 3463, 4865, 4954, 5248, 6531, 6710, 7293, 7372, 7505,
//! 8689) and as Exchange Online adds to them, and those of the reply codes.
//!
//! Servers answer `5.7.1` and `550` to everything, so a text that can be read counts more.

use super::{
    class::BounceClass::{self, Block, Full, Hard, Policy, Soft},
    evidence::Evidence,
};

/// The subject of a status, the first and the last detail, and their class. Details of `0` say nothing, except of the
/// subjects that are of one class throughout.
const STATUSES: &[(u16, u16, u16, BounceClass)] = &[
    (1, 1, 3, Hard),
    (1, 6, 6, Hard),
    (1, 7, 8, Policy),
    (1, 10, 10, Hard),
    (1, 20, 20, Policy),
    (1, 90, 90, Soft),
    (1, 351, 351, Hard),
    (2, 1, 1, Hard),
    (2, 2, 2, Full),
    (2, 3, 3, Policy),
    (2, 4, 4, Soft),
    (2, 121, 122, Soft),
    (3, 1, 2, Soft),
    (3, 3, 4, Policy),
    (3, 5, 5, Soft),
    (4, 310, 310, Hard),
    (4, 0, 999, Soft),
    (5, 3, 3, Soft),
    (5, 1, 999, Policy),
    (6, 0, 999, Policy),
    (7, 17, 18, Hard),
    (7, 20, 29, Block),
    (7, 500, 500, Soft),
    (7, 501, 503, Block),
    (7, 508, 509, Block),
    (7, 511, 511, Block),
    (7, 515, 515, Block),
    (7, 606, 651, Block),
    (7, 703, 703, Policy),
    (7, 700, 750, Block),
    (7, 800, 800, Block),
    (7, 0, 999, Policy),
];

/// The first and the last reply code, and their class. The others say only that something failed.
const CODES: &[(u16, u16, BounceClass)] = &[
    (400, 499, Soft),
    (500, 504, Policy),
    (523, 523, Policy),
    (530, 538, Policy),
    (552, 552, Full),
    (555, 555, Policy),
    (556, 556, Hard),
    (571, 571, Policy),
];

/// The class of a status, or else of a reply code.
pub(super) fn class_of(evidence: &Evidence) -> Option<BounceClass> {
    let by_status = evidence.status.and_then(|status| {
        let found = STATUSES.iter().find(|(subject, first, last, _)| {
            *subject == status.subject && (*first..=*last).contains(&status.detail)
        });
        // What breaks a rule now but not later is not a rule that a sender can know.
        let found = found.map(|(_, _, _, class)| *class);
        if evidence.is_temporary() && found == Some(Policy) { Some(Soft) } else { found }
    });
    let code = evidence.code.unwrap_or_default();
    let by_code = CODES.iter().find(|(first, last, _)| (*first..=*last).contains(&code));
    by_status.or(by_code.map(|(_, _, class)| *class))
}
