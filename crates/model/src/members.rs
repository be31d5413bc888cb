//! Members of a workspace and invites to it.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AccountId, InviteId, Role, Timestamp, names::valid_name};

/// A member of a workspace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Member {
    /// The account.
    pub id: AccountId,
    /// Its email address.
    pub email: String,
    /// Its name.
    pub name: String,
    /// Its role here.
    pub role: Role,
    /// The account's stable owner address.
    pub address: String,
    /// When it joined.
    pub joined_at: Timestamp,
}

/// Changes to a member.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct MemberChange {
    /// The new role.
    pub role: Role,
}

/// An open invite.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Invite {
    /// Its id.
    pub id: InviteId,
    /// The address of the invited person.
    pub email: String,
    /// The role that the new member gets.
    pub role: Role,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its link stops working.
    pub expires_at: Timestamp,
}

/// A new invite with its link, which is shown only once.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InviteWithLink {
    /// The invite.
    #[serde(flatten)]
    pub invite: Invite,
    /// The single-use link for the invited person.
    pub link: String,
}

/// A new invite.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewInvite {
    /// The address of the invited person.
    #[garde(length(chars, min = 3, max = 254))]
    pub email: String,
    /// The role that the new member gets.
    #[serde(default = "member")]
    pub role: Role,
}

const fn member() -> Role {
    Role::Member
}

/// Accepts an invite.
#[derive(Clone, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptInvite {
    /// The token of the link.
    #[garde(length(chars, min = 1, max = 200))]
    pub token: String,
    /// The password of a new account for the invited address. If omitted, the account that is logged in accepts.
    #[garde(length(chars, min = 10, max = 200))]
    #[serde(default)]
    pub password: Option<String>,
    /// The name of a new account.
    #[garde(inner(custom(valid_name)))]
    #[schemars(length(min = 1, max = 80))]
    #[serde(default)]
    pub name: Option<String>,
}
