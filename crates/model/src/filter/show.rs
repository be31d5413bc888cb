//! Writing an expression down so that it reads back as the same one.

use std::fmt;

use super::Filter;
use super::expression::{AddressField, AddressPattern, Node, Term};
use super::parser::ends_bare_value;

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(children) => write_joined(f, self, children, " and "),
            Self::Any(children) => write_joined(f, self, children, " or "),
            Self::Not(child) => {
                f.write_str("not ")?;
                write_operand(f, child, false)
            }
            Self::Term(term) => term.fmt(f),
        }
    }
}

/// Writes children side by side, in parentheses only where the text would else read differently: one pair too
/// many could take a deep expression over the limit of the parser.
fn write_joined(f: &mut fmt::Formatter<'_>, parent: &Node, children: &[Node], operator: &str) -> fmt::Result {
    for (index, child) in children.iter().enumerate() {
        if index > 0 {
            f.write_str(operator)?;
        }
        let binds_tighter = matches!((parent, child), (Node::Any(_), Node::All(_)));
        write_operand(f, child, binds_tighter)?;
    }
    Ok(())
}

/// Writes one operand; a group that does not bind tighter than its surroundings gets parentheses.
fn write_operand(f: &mut fmt::Formatter<'_>, node: &Node, binds_tighter: bool) -> fmt::Result {
    match node {
        Node::All(_) | Node::Any(_) if !binds_tighter => write!(f, "({node})"),
        _ => write!(f, "{node}"),
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(field, pattern) => write_address(f, *field, pattern),
            Self::Subject(part) => write_term(f, "subject", part),
            Self::Body(part) => write_term(f, "body", part),
            Self::Category(word) => write_term(f, "category", word),
            Self::Label(word) => write_term(f, "label", word),
            Self::Mark(asked) => write!(f, "{}:{}", asked.field, asked.word),
            Self::Before(day) => write!(f, "before:{day}"),
            Self::After(day) => write!(f, "after:{day}"),
            Self::Larger(bytes) => write_size(f, "larger", *bytes),
            Self::Smaller(bytes) => write_size(f, "smaller", *bytes),
        }
    }
}

fn write_address(f: &mut fmt::Formatter<'_>, field: AddressField, pattern: &AddressPattern) -> fmt::Result {
    let name = match field {
        AddressField::From => "from",
        AddressField::To => "to",
        AddressField::Cc => "cc",
    };
    match pattern {
        AddressPattern::Domain(domain) => write!(f, "{name}:@{domain}"),
        AddressPattern::Exact(value) | AddressPattern::Contains(value) => write_term(f, name, value),
    }
}

/// Writes a size in the largest unit that divides it.
fn write_size(f: &mut fmt::Formatter<'_>, field: &str, bytes: u64) -> fmt::Result {
    for (unit, factor) in [("gb", 1 << 30), ("mb", 1 << 20), ("kb", 1 << 10)] {
        if bytes > 0 && bytes.is_multiple_of(factor) {
            return write!(f, "{field}:{}{unit}", bytes / factor);
        }
    }
    write!(f, "{field}:{bytes}")
}

fn write_term(f: &mut fmt::Formatter<'_>, field: &str, value: &str) -> fmt::Result {
    let bare = !value.chars().any(ends_bare_value);
    if bare {
        return write!(f, "{field}:{value}");
    }
    let escaped = value.replace('\\', r"\\").replace('"', "\\\"");
    write!(f, "{field}:\"{escaped}\"")
}
