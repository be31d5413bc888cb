//! UUIDs that are ordered by time.

use std::sync::Mutex;

use uuid::Uuid;

use crate::core::lock::lock;

/// The last UUID that this process made.
#[derive(Default)]
pub(crate) struct Uuids(Mutex<Uuid>);

impl Uuids {
    /// A UUID for a time, greater than all before, also within a millisecond and when the clock is set back.
    pub(crate) fn next(&self, millis: u64, random: &[u8; 10]) -> Uuid {
        let fresh = uuid::Builder::from_unix_timestamp_millis(millis, random).into_uuid();
        let mut last = lock(&self.0);
        *last = if fresh > *last {
            fresh
        } else {
            after(*last, u32::from_be_bytes([random[0], random[1], random[2], random[3]]))
        };
        *last
    }
}

/// A version 7 UUID a random step after another one. The step is added to the 62 bits after the variant and carries
/// into the 12 after the version; the timestamp above stays.
fn after(last: Uuid, step: u32) -> Uuid {
    let (high, low) = last.as_u64_pair();
    let counter = (u128::from(high & 0xfff) << 62 | u128::from(low & (u64::MAX >> 2))) + u128::from(step) + 1;
    let tail = u64::try_from(counter & u128::from(u64::MAX >> 2)).unwrap_or_default();
    let head = u64::try_from(counter >> 62 & 0xfff).unwrap_or_default();
    Uuid::from_u64_pair(high & !0xfff | head, low & !(u64::MAX >> 2) | tail)
}
