//! The kinds of threats, and where they were found.
//!
//! The names of the kinds are stored and are part of the API, so they never change.

/// Where a threat was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// In the text.
    Body,
    /// In a file.
    Attachment,
}

/// What a threat is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A link on the block list.
    BlockedUrl,
    /// A host that imitates a brand.
    LookalikeHost,
    /// A punycode host with characters that look like Latin ones.
    PunycodeHost,
    /// A link that shows one host and leads to another.
    MisleadingLink,
    /// A link with a user name or password that poses as a host.
    UrlCredentials,
    /// A link to a bare or disguised IP address.
    IpAddressLink,
    /// A link that carries a whole page.
    DataUrl,
    /// A link that runs a script.
    ScriptLink,
    /// A program.
    Executable,
    /// A script that runs when opened.
    Script,
    /// A file name disguised as a document.
    DoubleExtension,
    /// A document with macros.
    MacroDocument,
    /// An encrypted archive or document.
    EncryptedArchive,
    /// An archive in an archive.
    NestedArchive,
    /// A page or drawing that runs scripts.
    ActiveContent,
    /// A PDF that runs scripts or programs.
    ActivePdf,
    /// The EICAR test file.
    TestVirus,
}

impl Kind {
    /// The stable name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BlockedUrl => "blocked_url",
            Self::LookalikeHost => "lookalike_host",
            Self::PunycodeHost => "punycode_host",
            Self::MisleadingLink => "misleading_link",
            Self::UrlCredentials => "url_credentials",
            Self::IpAddressLink => "ip_address_link",
            Self::DataUrl => "data_url",
            Self::ScriptLink => "script_link",
            Self::Executable => "executable",
            Self::Script => "script",
            Self::DoubleExtension => "double_extension",
            Self::MacroDocument => "macro_document",
            Self::EncryptedArchive => "encrypted_archive",
            Self::NestedArchive => "nested_archive",
            Self::ActiveContent => "active_content",
            Self::ActivePdf => "active_pdf",
            Self::TestVirus => "test_virus",
        }
    }
}

/// One harmful thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threat {
    /// The link, where it is one.
    pub url: Option<String>,
    /// What it is.
    pub kind: Kind,
    /// Where it was found.
    pub source: Source,
    /// The name of the file it was found in.
    pub file_name: Option<String>,
}
