//! People: accounts, their sessions, signing up and logging in.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AccountId, Plan, Role, SessionId, Timestamp, WorkspaceId, names::valid_name};

/// The shortest password that is accepted.
pub const PASSWORD_MIN: usize = 10;
/// The longest password that is hashed, so that nobody can make hashing dear.
pub const PASSWORD_MAX: usize = 200;

/// A person's account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Account {
    /// Its id, also the member id in each workspace.
    pub id: AccountId,
    /// The address to log in with.
    pub email: String,
    /// The name shown to other members.
    pub name: String,
    /// Whether the account operates this server.
    pub is_admin: bool,
    /// The account's stable owner address.
    pub address: String,
    /// When the account was created.
    pub created_at: Timestamp,
}

/// A new account.
#[derive(Clone, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignUp {
    /// The address to log in with.
    #[garde(length(chars, min = 3, max = 254))]
    pub email: String,
    /// The password, 10 to 200 characters.
    #[garde(length(chars, min = 10, max = 200))]
    pub password: String,
    /// The name shown to other members. If omitted, the part of the address before the @.
    #[garde(inner(custom(valid_name)))]
    #[schemars(length(min = 1, max = 80))]
    #[serde(default)]
    pub name: Option<String>,
    /// The name of the new workspace.
    #[garde(inner(custom(valid_name)))]
    #[schemars(length(min = 1, max = 80))]
    #[serde(default)]
    pub workspace_name: Option<String>,
    /// An affiliate's code.
    #[garde(length(chars, min = 1, max = 40), inner(custom(without_nul)))]
    #[serde(default)]
    pub affiliate_code: Option<String>,
    /// The code that the server printed when it started. Only the first account of a public server needs it.
    #[garde(length(chars, min = 1, max = 100), inner(custom(without_nul)))]
    #[serde(default)]
    pub code: Option<String>,
}

/// An email was sent. The response is the same whether or not the address has an account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerificationSent {
    /// The address.
    pub email: String,
    /// When the link in the email expires.
    pub expires_at: Timestamp,
}

/// Completes a sign-up.
#[derive(Clone, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteSignUp {
    /// The token of the link.
    #[garde(length(chars, min = 1, max = 100))]
    pub token: String,
    /// The password, 10 to 200 characters.
    #[garde(length(chars, min = 10, max = 200))]
    pub password: String,
}

fn without_nul(text: &str, (): &()) -> garde::Result {
    if text.contains('\0') { Err(garde::Error::new("must not contain control characters")) } else { Ok(()) }
}

/// Credentials to log in with.
#[derive(Clone, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The address.
    #[garde(length(chars, max = 254))]
    pub email: String,
    /// The password.
    #[garde(length(chars, max = 200))]
    pub password: String,
}

/// The account that is logged in, and its workspaces.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Me {
    /// The account.
    pub account: Account,
    /// The workspace of calls without a workspace id in their path.
    pub workspace_id: WorkspaceId,
    /// All workspaces of the account.
    pub workspaces: Vec<Membership>,
}

/// One workspace that an account belongs to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Membership {
    /// The workspace.
    pub id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// The account's role in it.
    pub role: Role,
    /// Its plan.
    pub plan: Plan,
}

/// A console session, as its owner sees it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Session {
    /// Its id (not the secret in the cookie).
    pub id: SessionId,
    /// Whether this is the current session.
    pub current: bool,
    /// The browser or program that logged in, as it named itself.
    pub user_agent: String,
    /// When it logged in.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// Switches the session to another workspace.
#[derive(Clone, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct SwitchWorkspace {
    /// A workspace of the account.
    pub workspace_id: WorkspaceId,
}

/// Asking for a link that sets a new password.
#[derive(Clone, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordResetRequest {
    /// The email address of the account.
    #[garde(length(chars, max = 254))]
    pub email: String,
}

/// Setting a new password with a link.
#[derive(Clone, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordReset {
    /// The token of the link.
    #[garde(length(chars, min = 1, max = 100))]
    pub token: String,
    /// The new password.
    #[garde(length(chars, min = 10, max = 200))]
    pub password: String,
}

/// Changing the password while logged in.
#[derive(Clone, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    /// The current password.
    #[garde(length(chars, max = 200))]
    pub current: String,
    /// The new password.
    #[garde(length(chars, min = 10, max = 200))]
    pub password: String,
}
