//! What an API key may do, in the words of the console.

use model::{Scope, api_keys::ApiKey};
use serde_json::{Value, json};

use super::{fields::Fields, form_state::Labels, shell::SideMailbox};

/// The fields of the forms of a key.
pub(super) const LABELS: Labels = &[
    ("name", "name", "Name"),
    ("role", "role", "Role"),
    ("scopes", "access", "Access"),
    ("mailbox_ids", "some_mailboxes", "Mailboxes"),
    ("expires_at", "expires", "Expires"),
];

/// A choice of scopes, as the forms offer it.
pub(super) struct Access {
    /// Its value in a form.
    pub(super) value: &'static str,
    pub(super) name: &'static str,
    /// `None` for everything that the role may do.
    pub(super) scopes: Option<&'static [Scope]>,
}

/// The choices; the suggested one comes first.
pub(super) const CHOICES: [Access; 4] = [
    Access { value: "send", name: "Read and send", scopes: Some(&[Scope::Read, Scope::Draft, Scope::Send]) },
    Access { value: "draft", name: "Read and draft", scopes: Some(&[Scope::Read, Scope::Draft]) },
    Access { value: "read", name: "Read only", scopes: Some(&[Scope::Read]) },
    Access { value: "full", name: "Full access", scopes: None },
];

impl Access {
    fn of(value: &str) -> Option<&'static Self> {
        CHOICES.iter().find(|choice| choice.value == value)
    }

    /// Whether a key with some scopes can be narrowed to this.
    fn is_within(&self, scopes: Option<&[Scope]>) -> bool {
        match (scopes, self.scopes) {
            (None, own) => own.is_some(),
            (Some(_), None) => false,
            (Some(scopes), Some(own)) => {
                own.len() < scopes.len() && own.iter().all(|scope| scopes.contains(scope))
            }
        }
    }
}

/// The choices to which a key can be narrowed.
pub(super) fn narrower(key: &ApiKey) -> Vec<&'static Access> {
    CHOICES.iter().filter(|choice| choice.is_within(key.scopes.as_deref())).collect()
}

/// The scopes in words: the name of the choice, or the scopes themselves.
pub(super) fn in_words(scopes: Option<&[Scope]>) -> String {
    let same = |own: Option<&'static [Scope]>| match (scopes, own) {
        (None, None) => true,
        (Some(scopes), Some(own)) => scopes.len() == own.len() && own.iter().all(|one| scopes.contains(one)),
        _ => false,
    };
    match CHOICES.iter().find(|choice| same(choice.scopes)) {
        Some(choice) => choice.name.to_owned(),
        None => scopes.unwrap_or_default().iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", "),
    }
}

/// The mailboxes of a key in words.
pub(super) fn mailboxes_in_words(key: &ApiKey, known: &[SideMailbox]) -> String {
    let Some(ids) = &key.mailbox_ids else { return "All mailboxes".to_owned() };
    let names: Vec<&str> = known
        .iter()
        .filter(|one| ids.iter().any(|id| id.as_str() == one.id))
        .map(|one| one.name.as_str())
        .collect();
    match names.as_slice() {
        [] => "No mailbox that still exists".to_owned(),
        [first] => (*first).to_owned(),
        [first, second] => format!("{first}, {second}"),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

/// The scopes that a form chose: `null` for everything.
pub(super) fn chosen_scopes(fields: &Fields) -> Value {
    // A value of nobody's form is refused like any unknown scope.
    let value = fields.given("access").unwrap_or(CHOICES[0].value);
    Access::of(value).map_or_else(|| json!([value]), |choice| json!(choice.scopes))
}

/// The mailboxes that a form chose: `null` for all. None at all is refused by the operation.
pub(super) fn chosen_mailboxes(fields: &Fields) -> Value {
    if fields.ticked("some_mailboxes") { json!(fields.all("mailbox")) } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_has_its_name_and_others_their_scopes() {
        for choice in CHOICES {
            assert_eq!(in_words(choice.scopes), choice.name);
        }
        assert_eq!(in_words(Some(&[Scope::Manage, Scope::Read])), "manage, read");
    }

    #[test]
    fn only_narrower_choices_are_offered() {
        let offered = |scopes: Option<&[Scope]>| {
            CHOICES
                .iter()
                .filter(|choice| choice.is_within(scopes))
                .map(|choice| choice.value)
                .collect::<Vec<_>>()
        };
        assert_eq!(offered(None), ["send", "draft", "read"]);
        assert_eq!(offered(CHOICES[0].scopes), ["draft", "read"]);
        assert!(offered(Some(&[Scope::Read])).is_empty());
        assert!(offered(Some(&[Scope::Manage])).is_empty());
    }

    #[test]
    fn a_form_without_a_choice_gets_the_suggested_one() {
        assert_eq!(chosen_scopes(&Fields::parse(b"")), json!(["read", "draft", "send"]));
        assert_eq!(chosen_scopes(&Fields::parse(b"access=full")), Value::Null);
        assert_eq!(chosen_scopes(&Fields::parse(b"access=x")), json!(["x"]));
        assert_eq!(chosen_mailboxes(&Fields::parse(b"mailbox=a")), Value::Null);
        assert_eq!(
            chosen_mailboxes(&Fields::parse(b"some_mailboxes=on&mailbox=a&mailbox=b")),
            json!(["a", "b"])
        );
    }
}
