//! Custom email domains: their DNS records and how far they are proven.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DomainId, Timestamp, WorkspaceId, emails::named};

named! {
    /// The verification status of a domain.
    DomainStatus {
        /// Not all required DNS records were found yet.
        Pending "pending",
        /// All required DNS records were found.
        Verified "verified",
        /// The DNS records were not found in time, or are gone.
        Failed "failed",
    }
}

named! {
    /// The state of a record in DNS.
    RecordStatus {
        /// Not checked yet.
        Pending "pending",
        /// Found.
        Verified "verified",
        /// Missing.
        Missing "missing",
        /// Found with another value.
        Mismatch "mismatch",
    }
}

named! {
    /// The purpose of a DNS record.
    RecordPurpose {
        /// Proves that the domain belongs to the workspace.
        Ownership "ownership",
        /// Routes mail to this server.
        Mx "mx",
        /// Allows this server to send for the domain.
        Spf "spf",
        /// Publishes a key that outgoing mail is signed with.
        Dkim "dkim",
        /// Says what receivers should do with mail that is not signed.
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
    /// Its full name, without a trailing dot.
    pub name: String,
    /// Its value. A text longer than 255 characters is published as several strings, which DNS joins.
    pub value: String,
    /// The preference of an MX record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
    /// Its purpose.
    pub purpose: RecordPurpose,
    /// Whether the domain needs it to be verified.
    pub required: bool,
    /// The result of the last lookup.
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
    /// The provider that sends and receives for it.
    pub provider: String,
    /// Its verification status.
    pub status: DomainStatus,
    /// Its name at the provider.
    pub provider_domain_id: Option<String>,
    /// The provider's region.
    pub region: Option<String>,
    /// The DNS records to publish.
    pub dns_records: Vec<DnsRecord>,
    /// What was wrong at the last check.
    pub last_error: Option<String>,
    /// When it was verified.
    pub verified_at: Option<Timestamp>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A new custom domain.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEmailDomain {
    /// The domain, such as `example.com`.
    #[garde(length(min = 1, max = 1000))]
    pub domain: String,
}

/// The result of deleting a domain.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DomainDeleted {
    /// Always `deleted`.
    pub status: DeletedDomainStatus,
}

named! {
    /// The result of deleting a domain.
    DeletedDomainStatus {
        /// It was deleted.
        Deleted "deleted",
    }
}
