//! Payment cards, IBANs and passports of nobody.

use super::{Chance, UPPER};

pub(super) fn card(brand: &str, layout: &str, chance: &mut Chance) -> Option<String> {
    let (prefix, length) = match brand {
        "visa" => ("4", 16),
        "visa13" => ("4", 13),
        "mastercard" => (chance.pick(&["51", "53", "55", "2221", "2512"]), 16),
        "amex" => (chance.pick(&["34", "37"]), 15),
        "discover" => (chance.pick(&["6011", "645", "65"]), 16),
        "jcb" => ("3530", 16),
        "diners" => ("3601", 14),
        "unionpay" => ("62", 16),
        "maestro" => ("5018", 16),
        _ => return None,
    };
    let mut number = prefix.to_owned() + &chance.text("0123456789", length - prefix.len() - 1);
    let sum: u32 = number
        .chars()
        .rev()
        .enumerate()
        .map(|(index, digit)| digit.to_digit(10).unwrap() * if index % 2 == 0 { 2 } else { 1 })
        .map(|value| if value > 9 { value - 9 } else { value })
        .sum();
    number.push(char::from_digit((10 - sum % 10) % 10, 10)?);
    let joint = match layout {
        "spaces" => " ",
        "dashes" => "-",
        _ => return Some(number),
    };
    let cuts: &[usize] = if length == 15 { &[0, 4, 10, 15] } else { &[0, 4, 8, 12, length] };
    Some(cuts.windows(2).map(|cut| &number[cut[0]..cut[1]]).collect::<Vec<_>>().join(joint))
}

pub(super) fn iban(country: &str, layout: &str, chance: &mut Chance) -> Option<String> {
    let mut digits = |length| chance.text("0123456789", length);
    let body = match country {
        "DE" => digits(18),
        "FR" => digits(23),
        "ES" | "SE" => digits(20),
        "IT" => format!("X{}", digits(22)),
        "AT" => digits(16),
        "CH" => digits(17),
        "BE" => digits(12),
        "NO" => digits(11),
        "PL" => digits(24),
        "NL" => format!("RABO{}", digits(10)),
        "GB" => format!("NWBK{}", digits(14)),
        "IE" => format!("AIBK{}", digits(14)),
        "PT" => digits(21),
        _ => return None,
    };
    let numbers: String =
        format!("{body}{country}00").chars().map(|c| c.to_digit(36).unwrap().to_string()).collect();
    let rest = numbers.chars().fold(0, |rest, digit| (rest * 10 + digit.to_digit(10).unwrap()) % 97);
    let iban = format!("{country}{:02}{body}", 98 - rest);
    if layout != "spaces" {
        return Some(iban);
    }
    let characters: Vec<char> = iban.chars().collect();
    Some(characters.chunks(4).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join(" "))
}

/// The second line of the machine-readable zone.
pub(super) fn passport(chance: &mut Chance) -> String {
    let with_check = |field: String| {
        let values = field.chars().map(|character| character.to_digit(36).unwrap_or(0));
        let sum: u32 = values.zip([7, 3, 1].iter().cycle()).map(|(value, weight)| value * weight).sum();
        format!("{field}{}", sum % 10)
    };
    let number = with_check(chance.text("CFGHJKLMNP", 1) + &chance.text(UPPER, 8));
    let born = with_check(format!(
        "{}0{}1{}",
        chance.text("6789", 2),
        chance.text("123456789", 1),
        chance.text("0123456789", 1)
    ));
    let expires = with_check(format!("3{}1105", chance.text("01234", 1)));
    let composite = with_check(format!("{number}{born}{expires}<<<<<<<<<<<<<<0"));
    let check = &composite[composite.len() - 1..];
    format!("{number}UTO{born}F{expires}<<<<<<<<<<<<<<0{check}")
}
