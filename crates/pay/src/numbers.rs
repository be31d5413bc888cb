//! Numbers and addresses in proofs: decimal and hexadecimal text of bounded length.

use std::fmt;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

use crate::keccak256;

/// The address of an account or a contract.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub [u8; 20]);

impl Address {
    /// Reads `0x` and forty hexadecimal digits in any case.
    pub fn parse(text: &str) -> Option<Self> {
        read_hex(text).map(Self)
    }

    /// In lower case, as stored and compared.
    pub fn to_lower(self) -> String {
        write_hex(&self.0)
    }

    /// With the EIP-55 checksum in its case, as displayed.
    pub fn to_checksum(self) -> String {
        let plain = self.to_lower();
        let hash = keccak256(&plain.as_bytes()[2..]);
        let cased = plain.bytes().enumerate().map(|(position, byte)| {
            let Some(digit) = position.checked_sub(2) else { return char::from(byte) };
            let nibble = hash[digit / 2] >> (if digit % 2 == 0 { 4 } else { 0 }) & 0xf;
            char::from(if nibble >= 8 { byte.to_ascii_uppercase() } else { byte })
        });
        cased.collect()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_checksum())
    }
}
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_checksum())
    }
}

/// A number of 256 bits, or 32 opaque bytes, most significant first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Word(pub [u8; 32]);

impl Word {
    /// Reads a decimal number: digits only, without a sign, spaces or leading zeros.
    pub(crate) fn parse_decimal(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if !(1..=78).contains(&digits.len()) || (digits[0] == b'0' && digits.len() > 1) {
            return None;
        }
        let mut bytes = [0_u8; 32];
        for digit in digits {
            let mut carry = u16::from(digit.checked_sub(b'0').filter(|value| *value <= 9)?);
            for byte in bytes.iter_mut().rev() {
                let value = u16::from(*byte) * 10 + carry;
                [_, *byte] = value.to_be_bytes();
                carry = value >> 8;
            }
            if carry > 0 {
                return None;
            }
        }
        Some(Self(bytes))
    }

    /// Reads `0x` and 64 hexadecimal digits.
    pub fn parse_hex(text: &str) -> Option<Self> {
        read_hex(text).map(Self)
    }

    /// As `0x` and 64 hexadecimal digits.
    pub fn to_hex(self) -> String {
        write_hex(&self.0)
    }

    /// The number, if it fits 64 bits.
    pub fn to_u64(self) -> Option<u64> {
        let (high, low) = self.0.split_at(24);
        let low: [u8; 8] = low.try_into().ok()?;
        high.iter().all(|byte| *byte == 0).then(|| u64::from_be_bytes(low))
    }
}

impl From<u64> for Word {
    fn from(number: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[24..].copy_from_slice(&number.to_be_bytes());
        Self(bytes)
    }
}

impl From<Address> for Word {
    fn from(address: Address) -> Self {
        let mut bytes = [0; 32];
        bytes[12..].copy_from_slice(&address.0);
        Self(bytes)
    }
}

impl fmt::Display for Word {
    /// In decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.0;
        let mut digits = Vec::with_capacity(78);
        while bytes.iter().any(|byte| *byte != 0) || digits.is_empty() {
            let mut rest = 0_u16;
            for byte in &mut bytes {
                let value = rest << 8 | u16::from(*byte);
                [_, *byte] = (value / 10).to_be_bytes();
                rest = value % 10;
            }
            let [_, digit] = rest.to_be_bytes();
            digits.push(char::from(b'0' + digit));
        }
        f.write_str(&digits.iter().rev().collect::<String>())
    }
}
impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

/// Reads `0x` and exactly the hexadecimal digits of `N` bytes.
pub(crate) fn read_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.strip_prefix("0x")?.as_bytes();
    // Checked before anything is allocated: the text comes from outside.
    if digits.len() != 2 * N {
        return None;
    }
    HEXLOWER_PERMISSIVE.decode(digits).ok()?.try_into().ok()
}

/// Bytes as `0x` and hexadecimal digits.
pub(crate) fn write_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("0x");
    HEXLOWER.encode_append(bytes, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_that_are_none_are_refused() {
        let max = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        assert_eq!(Word::parse_decimal(max), Some(Word([0xff; 32])));
        let beyond = "115792089237316195423570985008687907853269984665640564039457584007913129639936";
        for text in ["", "-1", "+1", "01", "00", " 1", "1 ", "0x1", "1e3", "1.0", "١", beyond] {
            assert_eq!(Word::parse_decimal(text), None, "{text:?}");
        }
        assert_eq!(Word::parse_decimal("0"), Some(Word::from(0)));
        assert_eq!(Word([0xff; 32]).to_u64(), None);
    }

    #[test]
    fn addresses_carry_their_checksum() {
        // The examples of EIP-55.
        for text in [
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
            "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
        ] {
            assert_eq!(Address::parse(&text.to_lowercase()).unwrap().to_checksum(), text);
        }
        for text in [
            "",
            "0x",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe",
            "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed00",
        ] {
            assert_eq!(Address::parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn numbers_come_back(bytes: [u8; 32], small: u64) {
            let word = Word(bytes);
            prop_assert_eq!(Word::parse_decimal(&word.to_string()), Some(word));
            prop_assert_eq!(Word::parse_hex(&word.to_hex()), Some(word));
            prop_assert_eq!(Word::from(small).to_u64(), Some(small));
            prop_assert_eq!(Word::from(small).to_string(), small.to_string());
        }
    }
}
