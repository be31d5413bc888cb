//! Patterns of addresses in policies: an address, all of a domain, all of its subdomains, or everyone.

use std::{borrow::Cow, fmt, str::FromStr};

use mail::address::Address;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A pattern of addresses. Of two patterns, one contains the other or they have no address in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressPattern {
    /// `*`
    Everyone,
    /// `@*.domain`: all its subdomains at any depth, not the domain itself. Kept with its leading dot.
    Subdomains(String),
    /// `@domain`: that domain only. Kept without the at sign.
    Domain(String),
    /// One address, with its tag if it has one.
    Address(String),
}

impl AddressPattern {
    /// Whether an address matches. It must be in the form of [`Address::as_str`].
    pub fn matches(&self, address: &str) -> bool {
        let domain = || address.rsplit_once('@').map_or("", |(_, domain)| domain);
        match self {
            Self::Everyone => true,
            Self::Subdomains(suffix) => domain().ends_with(suffix.as_str()),
            Self::Domain(name) => domain() == name,
            Self::Address(own) => own == address,
        }
    }

    /// Whether everything that another one matches is matched by this one too.
    pub fn covers(&self, other: &Self) -> bool {
        match other {
            Self::Everyone => *self == Self::Everyone,
            Self::Address(address) => self.matches(address),
            Self::Domain(name) => match self {
                Self::Domain(own) => own == name,
                _ => self.matches(&format!("x@{name}")),
            },
            Self::Subdomains(suffix) => match self {
                Self::Everyone => true,
                Self::Subdomains(own) => suffix.ends_with(own.as_str()),
                Self::Domain(_) | Self::Address(_) => false,
            },
        }
    }
}

const EXPECTED: &str = "expected an address, @domain, @*.domain or *";

impl FromStr for AddressPattern {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "*" {
            return Ok(Self::Everyone);
        }
        let (is_domain, rest) = match text.strip_prefix('@') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (has_subdomains, name) = match rest.strip_prefix("*.") {
            Some(name) if is_domain => (true, name),
            _ => (false, rest),
        };
        // An asterisk is allowed in the local part of an address, but whoever writes one here means something else.
        if name.contains('*') {
            return Err(EXPECTED.to_owned());
        }
        if !is_domain {
            let address = Address::parse(name).map_err(|error| format!("{EXPECTED}: {error}"))?;
            return Ok(Self::Address(address.as_str().to_owned()));
        }
        let address = Address::parse(&format!("x@{name}")).map_err(|_| EXPECTED.to_owned())?;
        let domain = address.domain();
        Ok(if has_subdomains {
            Self::Subdomains(format!(".{domain}"))
        } else {
            Self::Domain(domain.to_owned())
        })
    }
}

impl fmt::Display for AddressPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everyone => f.write_str("*"),
            Self::Subdomains(suffix) => write!(f, "@*{suffix}"),
            Self::Domain(name) => write!(f, "@{name}"),
            Self::Address(address) => f.write_str(address),
        }
    }
}

impl Serialize for AddressPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AddressPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Cow<'de, str> = Deserialize::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for AddressPattern {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "AddressPattern".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "maxLength": 1024, "examples": ["ann@example.com", "@example.com", "@*.example.com", "*"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::AddressPattern;

    fn pattern(text: &str) -> AddressPattern {
        text.parse().unwrap()
    }

    // rules: POLICY-3
    #[test]
    fn a_domain_has_no_subdomains_and_subdomains_not_their_domain() {
        let matched = |text: &str| {
            ["a@x.test", "b@x.test", "a@s.x.test", "a@t.s.x.test", "a@yx.test"]
                .into_iter()
                .filter(|address| pattern(text).matches(address))
                .collect::<Vec<_>>()
        };
        assert_eq!(matched("a@x.test"), ["a@x.test"]);
        assert_eq!(matched("A@X.test"), ["a@x.test"]);
        assert_eq!(matched("@x.test"), ["a@x.test", "b@x.test"]);
        assert_eq!(matched("@*.x.test"), ["a@s.x.test", "a@t.s.x.test"]);
        assert_eq!(matched("*").len(), 5);
    }

    // rules: POLICY-3
    #[test]
    fn an_asterisk_stands_alone_or_for_subdomains() {
        for text in [
            "a*@x.test",
            "*@x.test",
            "@*",
            "@*x.test",
            "@x.*.test",
            "@*.*.test",
            "**",
            "*.x.test",
            "@",
            "",
            "x",
        ] {
            assert!(text.parse::<AddressPattern>().is_err(), "{text:?}");
        }
        for text in ["a@x.test", "@x.test", "@*.x.test", "*"] {
            assert_eq!(pattern(text).to_string(), text);
        }
    }

    // rules: POLICY-4
    #[test]
    fn one_pattern_covers_another() {
        let all = ["*", "@*.test", "@*.x.test", "@x.test", "@s.x.test", "a@x.test", "a@s.x.test"];
        let covered = |text: &str| {
            all.into_iter().filter(|other| pattern(text).covers(&pattern(other))).collect::<Vec<_>>()
        };
        assert_eq!(covered("*"), all);
        assert_eq!(covered("@*.test"), all[1..]);
        assert_eq!(covered("@*.x.test"), ["@*.x.test", "@s.x.test", "a@s.x.test"]);
        assert_eq!(covered("@x.test"), ["@x.test", "a@x.test"]);
        assert_eq!(covered("a@x.test"), ["a@x.test"]);
    }
}
