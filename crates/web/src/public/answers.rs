//! Inputs and responses of the public routes, as in the OpenAPI document.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer of the status route.
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
    /// Who may sign up.
    pub(super) sign_up: SignUpMode,
    /// What this server can do.
    pub(super) features: Features,
}

/// Who may sign up.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum SignUpMode {
    /// Anybody.
    Open,
    /// Only invited people.
    Invite,
}

/// What this server can do.
#[derive(Serialize, JsonSchema)]
pub(super) struct Features {
    /// Whether mail can arrive.
    pub(super) receiving: bool,
    /// The way mail leaves.
    pub(super) outbound: String,
    /// Whether there is a language model: the mailbox agent and everything else that asks one.
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
