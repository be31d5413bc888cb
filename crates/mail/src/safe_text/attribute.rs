//! Attribute selectors of CSS, such as `[name^=value i]`.

use super::element;
use super::entities::{self, ReferenceContext};
use super::identifier::{UnsupportedSelector, identifier};
use super::prepare::{QUOTE, unmask};
use super::tokens::Attribute;

/// A test such as `[name^=value i]`.
#[derive(Clone, Debug)]
pub(super) struct AttributeTest {
    name: String,
    operator: char,
    value: String,
    any_case: bool,
}

impl AttributeTest {
    /// Parses the text between the brackets.
    pub(super) fn parse(text: &str) -> Result<Self, UnsupportedSelector> {
        let Some((name, value)) = text.split_once('=') else {
            let name = identifier(text.trim())?;
            return Ok(Self { name, operator: '?', value: String::new(), any_case: false });
        };
        let operator = name.chars().last().filter(|c| "~|^$*".contains(*c));
        let name = name.strip_suffix(|c| "~|^$*".contains(c)).unwrap_or(name);
        let value = value.trim();
        // After a string the flag needs no white space.
        let (value, flag) = match value.strip_prefix(QUOTE) {
            Some(rest) => rest.split_once(QUOTE).ok_or(UnsupportedSelector::Unknown)?,
            None => value.rsplit_once(' ').unwrap_or((value, "")),
        };
        let is_string = text.contains(QUOTE);
        let any_case = match flag.trim().to_ascii_lowercase().as_str() {
            "" => None,
            "i" => Some(true),
            "s" => Some(false),
            _ => return Err(UnsupportedSelector::Unknown),
        };
        let name = identifier(name.trim())?;
        if !is_string {
            identifier(value.trim())?;
        }
        let any_case = any_case.unwrap_or_else(|| element::compares_any_case(&name.to_ascii_lowercase()));
        Ok(Self {
            name,
            operator: operator.unwrap_or('='),
            value: unmask(if is_string { value } else { value.trim() }),
            any_case,
        })
    }

    /// Whether it matches an element with these attributes.
    pub(super) fn matches(&self, attributes: &[Attribute<'_>]) -> bool {
        let Some(found) = attributes.iter().find(|found| found.name.eq_ignore_ascii_case(&self.name)) else {
            return false;
        };
        if self.operator == '?' {
            return true;
        }
        let value = entities::decode(found.value, ReferenceContext::Attribute);
        if self.any_case {
            self.compare(&value.to_ascii_lowercase(), &self.value.to_ascii_lowercase())
        } else {
            self.compare(&value, &self.value)
        }
    }

    fn compare(&self, value: &str, wanted: &str) -> bool {
        match self.operator {
            '~' => value.split_ascii_whitespace().any(|word| word == wanted),
            '|' => value == wanted || value.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('-')),
            // The empty string is a substring of every value, but matches nothing in CSS.
            '^' => !wanted.is_empty() && value.starts_with(wanted),
            '$' => !wanted.is_empty() && value.ends_with(wanted),
            '*' => !wanted.is_empty() && value.contains(wanted),
            _ => value == wanted,
        }
    }
}
