//! A form on a page: what was typed, and what is wrong with it, at the fields and with the labels that the form shows.

use operations::{Error, ErrorKind};

use super::{fields::Fields, page};

/// The fields of a form: the name in the API's input, the name in the form, and the label.
pub(super) type Labels = &'static [(&'static str, &'static str, &'static str)];

/// A form on a page.
#[derive(Clone, Default)]
pub(super) struct FormState {
    /// Nothing before the form was sent.
    typed: Option<Fields>,
    /// Fields and what is wrong with them.
    errors: Vec<(String, String)>,
    said: String,
}

impl FormState {
    /// A form that was refused.
    pub(super) fn refused(typed: Fields, refused: &Error, labels: Labels) -> Self {
        Self::refused_at(typed, refused, |path| {
            let found = labels.iter().find(|(name, ..)| *name == path);
            found.map(|(_, field, label)| ((*field).to_owned(), (*label).to_owned()))
        })
    }

    /// The same for forms whose fields are not known beforehand: `place` gives a path's field and label.
    pub(super) fn refused_at(
        typed: Fields,
        refused: &Error,
        place: impl Fn(&str) -> Option<(String, String)>,
    ) -> Self {
        let mut form = Self { typed: Some(typed), ..Self::default() };
        if let Some((field, _)) = about(refused).and_then(&place) {
            form.said = page::explain(refused);
            form.errors.push((field, form.said.clone()));
            return form;
        }
        let mut others = Vec::new();
        for detail in refused.details() {
            let short = detail.path.split(['[', '.']).next().unwrap_or_default();
            match place(&detail.path).or_else(|| place(short)) {
                Some((field, label)) => {
                    others.push(format!("{label}: {}.", page::phrase(&detail.message)));
                    form.errors.push((field, page::sentence(&detail.message)));
                }
                None => others.push(page::explain_detail(detail)),
            }
        }
        form.said = if others.is_empty() {
            page::explain(refused)
        } else {
            others.extend(refused.fix().map(ToOwned::to_owned));
            others.join(" ")
        };
        form
    }

    /// What is wrong, in one text; empty unless the form was refused.
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    /// What is wrong with a field; empty if nothing is.
    pub(super) fn error(&self, field: &str) -> &str {
        self.errors.iter().find(|(name, _)| name == field).map_or("", |(_, message)| message)
    }

    /// What was typed into a field.
    pub(super) fn value(&self, field: &str) -> &str {
        self.typed.as_ref().map_or("", |typed| typed.get(field))
    }

    /// What was typed into a field, or what it shows before.
    pub(super) fn or<'a>(&'a self, field: &str, otherwise: &'a str) -> &'a str {
        self.typed.as_ref().map_or(otherwise, |typed| typed.get(field))
    }

    /// Whether a box is ticked, or is before.
    pub(super) fn ticked_or(&self, field: &str, otherwise: &bool) -> bool {
        self.typed.as_ref().map_or(*otherwise, |typed| typed.ticked(field))
    }

    /// Whether a box is ticked that is not at first.
    pub(super) fn ticked(&self, field: &str) -> bool {
        self.ticked_or(field, &false)
    }

    /// Whether one of several boxes of the same name is ticked that is not at first.
    pub(super) fn chose(&self, field: &str, value: &str) -> bool {
        self.chose_or(field, value, &false)
    }

    /// Whether one of several boxes of the same name is ticked, or is before.
    pub(super) fn chose_or(&self, field: &str, value: &str, otherwise: &bool) -> bool {
        self.typed.as_ref().map_or(*otherwise, |typed| typed.all(field).contains(&value))
    }

    /// Whether the form was refused.
    pub(super) fn is_refused(&self) -> bool {
        !self.said.is_empty()
    }
}

/// The input that an error without details is about.
fn about(refused: &Error) -> Option<&'static str> {
    Some(match refused.kind() {
        ErrorKind::MailboxExists | ErrorKind::AccountExists => "email",
        ErrorKind::FolderExists | ErrorKind::LabelExists => "name",
        ErrorKind::DomainExists | ErrorKind::DomainInUse => "domain",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: Labels = &[("name", "name", "Name"), ("email", "local", "Address")];

    #[test]
    fn errors_stand_at_their_fields_with_their_labels() {
        let typed = Fields::parse(b"name=Support&local=x&more=on");
        let form = FormState::refused(typed, &Error::invalid("email", "must not be empty"), LABELS);
        assert_eq!((form.error("local"), form.error("name")), ("Must not be empty.", ""));
        assert_eq!(form.said(), "Address: must not be empty.");
        assert_eq!((form.value("name"), form.or("local", "y")), ("Support", "x"));
        assert!(form.ticked_or("more", &false) && form.is_refused());
        let form = FormState::refused(Fields::default(), &Error::new(ErrorKind::MailboxExists), LABELS);
        assert!(!form.error("local").is_empty());
        let form = FormState::default();
        assert_eq!((form.or("local", "y"), form.said()), ("y", ""));
    }

    #[test]
    fn what_belongs_to_no_field_is_told_too() {
        let form =
            FormState::refused(Fields::default(), &Error::invalid("event_types[0]", "unknown"), LABELS);
        assert_eq!((form.said(), form.error("name")), ("Event types[0]: unknown.", ""));
    }
}
