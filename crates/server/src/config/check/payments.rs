//! The options of the keyless interface.

use std::time::Duration;

use model::Limit;
use operations::payments::{LEDGER_RECIPIENT, PaymentSettings, Prices};
use pay::{Address, networks};
use url::Url;

use super::Reader;
use crate::config::{Facilitator, Payments};

/// The lowest price that facilitators settle, in millionths of a dollar.
const MIN_PRICE_MICRO_DOLLARS: u64 = 1000;

impl Reader<'_> {
    pub(super) fn payments(&mut self) -> Option<Payments> {
        let network = self.parsed("payments.network", network);
        let facilitator = self.facilitator();
        let is_ledger = self.text("payments.facilitator") == "ledger";
        if is_ledger && network.is_some_and(|network| !network.is_test) {
            let message = "the ledger is for test networks only: what wallets sign for a main network is real money; \
                           name a facilitator's URL in payments.facilitator";
            self.complain("payments.network", message);
        }
        let pay_to = self.optional("payments.pay_to", address);
        if !is_ledger && self.text("payments.pay_to").is_empty() {
            self.complain("payments.pay_to", "is needed with a facilitator: the address that is paid");
        }
        let prices = self.prices();
        let gift = self.parsed("payments.ledger_faucet", dollars);
        let siwx_only = self.choice("payments.read_auth", &["both", "siwx"]) == "siwx";
        let max_timeout = self.number("payments.max_timeout", 30..=3600).unsigned_abs();
        let mailboxes = self.number("payments.mailboxes", 0..=50).unsigned_abs();
        let wallet_rpm = self.number("payments.wallet_rpm", 1..=1_000_000_000).unsigned_abs();
        let network = network?;
        let terms = pay::Terms {
            network: network.id.to_owned(),
            v1_network: network.v1_name.to_owned(),
            domain: network.domain(),
            pay_to: pay_to.unwrap_or(LEDGER_RECIPIENT),
            amount: 0,
            max_timeout,
        };
        let mailboxes = Limit::of(mailboxes);
        let settings =
            PaymentSettings { terms, prices, siwx_only, ledger_gift: gift?, mailboxes, wallet_rpm };
        Some(Payments { settings, facilitator })
    }

    fn prices(&mut self) -> Prices {
        let mut price = |name: &str| {
            let key = format!("payments.prices.{name}");
            let amount = self.parsed(&key, dollars).unwrap_or_default();
            if (1..MIN_PRICE_MICRO_DOLLARS).contains(&amount) {
                self.complain(&key, "must be 0 or at least 0.001: facilitators settle nothing smaller");
            }
            amount
        };
        Prices {
            create_mailbox: price("create_mailbox"),
            send: price("send"),
            reply: price("reply"),
            forward: price("forward"),
            draft: price("draft"),
        }
    }

    fn facilitator(&mut self) -> Option<Facilitator> {
        let time_limit = self.number("payments.facilitator_timeout", 1..=30).unsigned_abs();
        let mut headers = Vec::new();
        for line in self.list("payments.facilitator_headers") {
            match header(&line) {
                Some(pair) => headers.push(pair),
                // Without the value, which is a secret.
                None => {
                    self.complain("payments.facilitator_headers", "expected lines such as \"Name: value\"");
                }
            }
        }
        if self.text("payments.facilitator") == "ledger" {
            return None;
        }
        let url = self.parsed("payments.facilitator", facilitator_url)?;
        Some(Facilitator { url, headers, time_limit: Duration::from_secs(time_limit) })
    }
}

fn network(text: &str) -> Result<&'static networks::Network, String> {
    networks::find(text).ok_or_else(|| {
        let known: Vec<&str> = networks::NETWORKS.iter().map(|network| network.id).collect();
        format!("expected one of {}, found {text:?}", known.join(", "))
    })
}

fn address(text: &str) -> Result<Address, String> {
    let parsed = Address::parse(text);
    // A mistyped address is lost money, so one in mixed case must have a valid checksum.
    let mixed = |text: &str| text != text.to_lowercase() && text[2..] != text[2..].to_uppercase();
    let sound = parsed.filter(|address| !mixed(text) || address.to_checksum() == text);
    sound.ok_or_else(|| format!("expected an address such as {LEDGER_RECIPIENT}, found {text:?}"))
}

fn facilitator_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| "expected \"ledger\" or a URL such as https://x402.example/facilitator".to_owned())
}

fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let (name, value) = (name.trim(), value.trim());
    let token = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    (plain(name) && token && plain(value)).then(|| (name.to_owned(), value.to_owned()))
}

/// An amount in dollars with up to six decimals, as millionths.
fn dollars(text: &str) -> Result<u64, String> {
    let read = || {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || whole.len() > 6 || part.len() > 6 || !digits(whole) || !digits(part) {
            return None;
        }
        format!("{whole}{part:0<6}").parse().ok()
    };
    read().ok_or_else(|| format!("expected an amount in dollars such as \"0.10\", found {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Sources};

    #[test]
    fn dollars_are_exact() {
        for (text, amount) in
            [("0", 0), ("0.10", 100_000), ("0.000001", 1), ("10", 10_000_000), ("1.5", 1_500_000)]
        {
            assert_eq!(dollars(text), Ok(amount), "{text}");
        }
        for text in ["", ".1", "-1", "0.0000001", "1e3", "1,0", "9999999"] {
            assert!(dollars(text).is_err(), "{text}");
        }
    }

    fn load(pairs: &[(&str, &str)]) -> Result<Config, Vec<String>> {
        let pair =
            |(name, value): &(&str, &str)| (format!("AGENT_MAILBOX__PAYMENTS__{name}"), (*value).to_owned());
        let environment = pairs.iter().map(pair).collect();
        let sources = Sources { working_dir: "/nowhere".into(), environment, ..Sources::default() };
        Config::load(&sources).map_err(|all| all.iter().map(ToString::to_string).collect())
    }

    // rules: PAY-13, PAY-14
    #[test]
    fn the_defaults_are_the_ledger_and_the_prices_of_the_contract() {
        let payments = load(&[]).unwrap().payments;
        assert!(payments.facilitator.is_none());
        assert_eq!(format!("{:?}", payments.settings), format!("{:?}", PaymentSettings::default()));
        assert_eq!(
            (payments.settings.prices.create_mailbox, payments.settings.prices.draft),
            (100_000, 10_000)
        );
        assert_eq!(payments.settings.ledger_gift, 10_000_000);
    }

    /// What wallets sign for a main network is real money, and anyone who sees it could take it.
    // rules: PAY-13
    #[test]
    fn the_ledger_is_refused_for_main_networks() {
        for network in ["eip155:8453", "eip155:137", "eip155:42161"] {
            let problems = load(&[("NETWORK", network)]).unwrap_err();
            assert!(problems[0].contains("test networks only"), "{problems:?}");
            let pay_to = ("PAY_TO", "0x209693Bc6afc0C5328bA36FaF03C514EF312287C");
            let facilitator = ("FACILITATOR", "https://facilitator.example/x402");
            let config = load(&[("NETWORK", network), facilitator, pay_to]).unwrap();
            assert_eq!(config.payments.settings.terms.network, network);
            assert!(load(&[("NETWORK", network), facilitator]).unwrap_err()[0].contains("pay_to"));
        }
        for (name, value) in [
            ("NETWORK", "eip155:1"),
            ("FACILITATOR", "ftp://x"),
            ("PRICES__SEND", "0.0001"),
            ("PRICES__SEND", "free"),
            ("READ_AUTH", "none"),
            ("MAILBOXES", "51"),
        ] {
            assert!(load(&[(name, value)]).is_err(), "{name}");
        }
        let header = "[\"Authorization: Bearer hush\"]";
        let config = load(&[("FACILITATOR_HEADERS", header)]).unwrap();
        assert!(!format!("{config:?}").contains("hush"));
    }

    #[test]
    fn mistyped_addresses_are_noticed() {
        assert!(address("0x209693Bc6afc0C5328bA36FaF03C514EF312287C").is_ok());
        assert!(address("0x209693bc6afc0c5328ba36faf03c514ef312287c").is_ok());
        assert!(address("0x209693bC6afc0C5328bA36FaF03C514EF312287C").is_err());
        assert!(address("0x209693").is_err());
    }
}
