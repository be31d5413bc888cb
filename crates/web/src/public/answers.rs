//! Inputs and responses of the public routes, as in the OpenAPI document.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The status of the service.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Status {
    /// Whether the service works.
    pub(super) ok: bool,
    /// The version of the program.
    pub(super) version: &'static str,
}

/// What a client needs to know before it has a key.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PublicConfig {
    /// The hosted domains.
    pub(super) domains: Vec<String>,
    /// Who can sign up.
    pub(super) sign_up: SignUpMode,
    /// The features of this server.
    pub(super) features: Features,
}

/// Who can sign up.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum SignUpMode {
    /// Anyone.
    Open,
    /// Only invited people.
    Invite,
}

/// The features of this server.
#[derive(Serialize, JsonSchema)]
pub(super) struct Features {
    /// Whether this server receives mail.
    pub(super) receiving: bool,
    /// How outgoing mail is sent: `local`, `relay`, `direct` or `sandbox`.
    pub(super) outbound: String,
    /// Whether a language model is configured, for the mailbox agent and other AI features.
    pub(super) ai: bool,
}

/// What an affiliate's link carries.
#[derive(Deserialize, Validate, JsonSchema)]
#[garde(allow_unvalidated)]
pub(crate) struct TrackQuery {
    /// The affiliate's code.
    #[serde(default)]
    pub(super) code: String,
}
