//! New ids, ordered by time.

use model::{Id, Kind};

use super::App;

impl App {
    /// A new id, ordered by time.
    pub fn new_id<K: Kind>(&self) -> Id<K> {
        Id::from_uuid(self.new_uuid())
    }

    /// A new UUID, ordered by time: each is greater than the one before from this process, also within a millisecond
    /// and when the clock is set back.
    pub fn new_uuid(&self) -> uuid::Uuid {
        let mut random = [0; 10];
        self.entropy().fill(&mut random);
        let millis = u64::try_from(self.now().as_micros() / 1000).unwrap_or_default();
        self.0.uuids.next(millis, &random)
    }
}
