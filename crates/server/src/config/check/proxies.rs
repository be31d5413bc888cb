//! `http.trust_proxy`: none, a number of proxies, or those of some networks.

use std::ops::RangeInclusive;

use toml::Value;
use web::{Network, Proxies};

use super::{Reader, kind_of};

/// Maximum proxies in a chain.
const PROXY_COUNT: RangeInclusive<u32> = 1..=16;

impl Reader<'_> {
    pub(super) fn proxies(&mut self, key: &str) -> Proxies {
        let value = self.entry(key).map(|entry| &entry.value);
        let read = match value {
            Some(Value::Boolean(true)) => Ok(Proxies::Count(1)),
            Some(Value::Boolean(false)) | None => Ok(Proxies::None),
            Some(Value::Integer(count)) => match u32::try_from(*count) {
                Ok(count) if PROXY_COUNT.contains(&count) => Ok(Proxies::Count(count)),
                _ => Err(format!("must be between {} and {}", PROXY_COUNT.start(), PROXY_COUNT.end())),
            },
            Some(Value::Array(items)) => networks(items),
            Some(other) => {
                let found = kind_of(other);
                Err(format!("expected true, false, a whole number or a list of networks, found {found}"))
            }
        };
        read.unwrap_or_else(|message| {
            self.complain(key, message);
            Proxies::None
        })
    }
}

fn networks(items: &[Value]) -> Result<Proxies, String> {
    let network = |item: &Value| match item.as_str() {
        Some(text) => text.trim().parse::<Network>(),
        None => Err(format!("expected networks as texts, found {}", kind_of(item))),
    };
    let networks = items.iter().map(network).collect::<Result<Vec<_>, _>>()?;
    Ok(if networks.is_empty() { Proxies::None } else { Proxies::Networks(networks) })
}
