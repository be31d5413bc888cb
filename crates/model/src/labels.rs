//! Custom labels of a mailbox.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LabelId, MailboxId, Timestamp, filter, names::valid_name};

/// How many labels a mailbox can have.
pub const LABELS_PER_MAILBOX: usize = 20;

/// A custom label.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Label {
    /// Its id.
    pub id: LabelId,
    /// The mailbox it belongs to.
    pub mailbox_id: MailboxId,
    /// Its name.
    pub name: String,
    /// Its name in lower case with hyphens, unique in the mailbox.
    pub slug: String,
    /// A filter expression, or an instruction for the AI provider.
    pub rules: String,
    /// A colour such as `#1f6feb`.
    pub color: String,
    /// Its position in the list.
    pub sort_order: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A new label.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLabel {
    /// Its name.
    #[garde(custom(valid_name))]
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    /// A filter expression such as `from:@acme.com and has:attachment`, or an instruction for the AI provider.
    #[garde(length(chars, max = 500), custom(valid_rules))]
    #[serde(default)]
    pub rules: String,
    /// A colour such as `#1f6feb`.
    #[garde(custom(hex_color))]
    #[schemars(pattern(r"^#[0-9a-fA-F]{6}$"))]
    #[serde(default = "default_color")]
    pub color: String,
}

/// Changes to a label. Omitted fields stay as they are.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelChange {
    /// The new name; the slug changes with it.
    #[garde(inner(custom(valid_name)))]
    #[schemars(length(min = 1, max = 80))]
    #[serde(default)]
    pub name: Option<String>,
    /// The new rules.
    #[garde(length(chars, max = 500), inner(custom(valid_rules)))]
    #[serde(default)]
    pub rules: Option<String>,
    /// The new colour.
    #[garde(inner(custom(hex_color)))]
    #[schemars(pattern(r"^#[0-9a-fA-F]{6}$"))]
    #[serde(default)]
    pub color: Option<String>,
}

/// The order of a mailbox's labels.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelOrder {
    /// The ids of all labels of the mailbox, each once.
    #[garde(length(max = 20))]
    pub ids: Vec<LabelId>,
}

fn default_color() -> String {
    "#6b7280".to_owned()
}

fn valid_rules(rules: &str, _: &()) -> garde::Result {
    filter::parse_rules(rules).map(|_| ()).map_err(garde::Error::new)
}

fn hex_color(color: &str, _: &()) -> garde::Result {
    let digits = color.strip_prefix('#').unwrap_or_default();
    if digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(())
    } else {
        Err(garde::Error::new("expected a colour such as #1f6feb"))
    }
}
