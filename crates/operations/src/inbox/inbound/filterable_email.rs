//! An email as filter expressions see it.

use mail::message::Message;
use model::filter::{AddressField, FilterSubject, Mark, Party};
use store::emails::EmailRecord;

/// An email as filter expressions see it: at its arrival, or later.
pub(crate) struct FilterableEmail<'a> {
    pub(crate) record: &'a EmailRecord,
    pub(crate) message: &'a Message,
    /// Its text for agents.
    pub(crate) safe: &'a str,
    pub(crate) has_link: bool,
}

impl FilterSubject for FilterableEmail<'_> {
    fn parties(&self, field: AddressField) -> impl Iterator<Item = Party<'_>> {
        let people = match field {
            AddressField::From => self.message.from.as_slice(),
            AddressField::To => self.message.to.as_slice(),
            AddressField::Cc => self.message.cc.as_slice(),
        };
        people.iter().map(|person| Party {
            name: person.name.as_deref().unwrap_or_default(),
            address: &person.address,
        })
    }
    fn subject(&self) -> &str {
        &self.record.subject
    }
    fn body(&self) -> &str {
        self.safe
    }
    fn category(&self) -> Option<&str> {
        Some(self.record.category.as_str())
    }
    fn labels(&self) -> impl Iterator<Item = &str> {
        self.record.labels.iter().map(String::as_str)
    }
    fn is(&self, mark: Mark) -> bool {
        match mark {
            Mark::Attachment => !self.record.attachments.is_empty(),
            Mark::Link => self.has_link,
            Mark::Read => self.record.read,
            Mark::Starred => self.record.starred,
            Mark::Urgent => self.record.is_urgent,
            Mark::Automatic => self.record.automatic.is_some(),
        }
    }
    fn date(&self) -> i64 {
        self.record.date.as_micros()
    }
    fn size(&self) -> u64 {
        u64::try_from(self.record.size).unwrap_or_default()
    }
}
