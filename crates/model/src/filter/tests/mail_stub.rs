//! An email made of constants.

use super::super::{AddressField, FilterSubject, Mark, Party};

#[derive(Debug, Clone, Copy)]
pub struct Stub {
    pub from: &'static [(&'static str, &'static str)],
    pub subject: &'static str,
    pub body: &'static str,
    pub category: Option<&'static str>,
    pub labels: &'static [&'static str],
    pub marks: &'static [Mark],
    pub date: i64,
}

impl Stub {
    /// An unread, urgent invoice of 2 KiB with an attachment.
    pub fn invoice() -> Self {
        Self {
            from: &[("Ann Lee (Sales)", "ann.lee@acme.com")],
            subject: "Your Invoice 42",
            body: "Viele Grüße",
            category: Some("technical"),
            labels: &["to-pay", "vip"],
            marks: &[Mark::Attachment, Mark::Urgent],
            date: 0,
        }
    }
}

impl FilterSubject for Stub {
    fn parties(&self, field: AddressField) -> impl Iterator<Item = Party<'_>> {
        let pairs = match field {
            AddressField::From => self.from,
            AddressField::To => &[("", "first@xn--bcher-kva.example"), ("", "second@x.org")],
            AddressField::Cc => &[("Jörg", "not an address")],
        };
        pairs.iter().map(|&(name, address)| Party { name, address })
    }

    fn subject(&self) -> &str {
        self.subject
    }

    fn body(&self) -> &str {
        self.body
    }

    fn category(&self) -> Option<&str> {
        self.category
    }

    fn labels(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().copied()
    }

    fn is(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }

    fn date(&self) -> i64 {
        self.date
    }

    fn size(&self) -> u64 {
        2048
    }
}
