//! Faults of a message: why parsers could read it differently.
//!
//! A fault does not stop the parser: the rest is still read as far as is safe.

/// Why parsers could read a message differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// More header bytes or lines than are read.
    HeadersTooLarge,
    /// Parts or attached messages nested deeper than is read, or more of them.
    NestedTooDeep,
    /// A header name with characters that no name has.
    HeaderName,
    /// A repeated header that may occur once.
    RepeatedHeader,
    /// A boundary that is missing, empty, repeated, or found where none should be.
    Boundary,
    /// A transfer encoding that is unknown, forbidden where it stands, or broken.
    Encoding,
    /// NUL bytes, or line ends of more than one kind.
    Bytes,
    /// Decoding would exceed the size limit.
    TooMuchContent,
    /// Two parsers found different parts.
    Disagreement,
}

/// Faults as they are found, each once.
#[derive(Debug, Default)]
pub(super) struct Faults(pub(super) Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        if !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }
}
