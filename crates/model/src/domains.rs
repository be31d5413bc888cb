//! Custom email domains: their DNS records and how far they are proven.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DomainId, Timestamp, WorkspaceId, emails::named};

named! {
    /// How far a domain is proven.
    DomainStatus {
        /// Its records have not all been seen yet.
        Pending "pending",
        /// All required records are there.
        Verified "verified",
        /// The proof did not come in time, or is gone.
        Failed "failed",
    }
}

named! {
    /// What was found of a record in DNS.
    RecordStatus {
        /// It was not looked up yet.
        Pending "pending",
        /// It is there.
        Verified "verified",
        /// It is not there.
        Missing "missing",
        /// Something else is there.
        Mismatch "mismatch",
    }
}

named! {
    /// What a record is for.
    RecordPurpose {
        /// Shows that the domain belongs to the workspace.
        Ownership "ownership",
        /// Leads mail to this server.
        Mx "mx",
        /// Lets this server send for the domain.
        Spf "spf",
        /// Publishes a key that mail is signed with.
        Dkim "dkim",
        /// Says what others should do with mail that is not signed.
        Dmarc "dmarc",
    }
}

named! {
    /// The type of a DNS record.
    RecordType {
        /// A mail server.
        Mx "MX",
        /// A text.
        Txt "TXT",
    }
}

/// A DNS record that a custom domain needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DnsRecord {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: RecordType,
    /// Its full name, without a dot at the end.
    pub name: String,
    /// Its value. A text longer than 255 characters is published in several strings, which DNS joins.
    pub value: String,
    /// The preference of an MX record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
    /// What it is for.
    pub purpose: RecordPurpose,
    /// Whether the domain is verified only with it.
    pub required: bool,
    /// What was found when it was last looked up.
    pub status: RecordStatus,
}

/// A custom email domain.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EmailDomain {
    /// Its id.
    pub id: DomainId,
    /// The workspace it belongs to.
    pub workspace_id: WorkspaceId,
    /// Its name in lower case, international names in A-labels.
    pub domain: String,
    /// What sends and receives for it.
    pub provider: String,
    /// How far it is proven.
    pub status: DomainStatus,
    /// Its name at the provider.
    pub provider_domain_id: Option<String>,
    /// Where the provider keeps it.
    pub region: Option<String>,
    /// What has to stand in DNS.
    pub dns_records: Vec<DnsRecord>,
    /// What was wrong when it was last looked at.
    pub last_error: Option<String>,
    /// Since when it is verified.
    pub verified_at: Option<Timestamp>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// What adding a domain takes.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEmailDomain {
    /// The domain, such as `example.com`.
    #[garde(length(min = 1, max = 1000))]
    pub domain: String,
}

/// What became of a domain.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DomainDeleted {
    /// Always `deleted`.
    pub status: DeletedDomainStatus,
}

named! {
    /// What became of a domain.
    DeletedDomainStatus {
        /// It is gone.
        Deleted "deleted",
    }
}
