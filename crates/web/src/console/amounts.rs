//! Amounts of money, as people read them.

use super::time::number;

/// An amount with its currency.
pub(super) fn money(cents: i64, currency: &str) -> String {
    format!("{}.{:02} {}", number(cents / 100), (cents % 100).abs(), currency.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_cents_and_a_currency() {
        assert_eq!(money(-1234, "eur"), "−12.34 EUR");
    }
}
