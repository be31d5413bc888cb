//! Check digits and dates, as the bodies that issue the numbers publish them.

/// ISO/IEC 7812: every second digit from the right doubled.
pub(super) fn luhn(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| if index % 2 == 1 { digit * 2 / 10 + digit * 2 % 10 } else { *digit })
        .sum();
    sum.is_multiple_of(10)
}

/// The sum of digits times weights; what has no weight is left out.
pub(super) fn weighted(digits: &[u32], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| digit * weight).sum()
}

/// The remainder of a number of letters and digits, each letter as a number from 10 on.
pub(super) fn remainder_97(characters: impl Iterator<Item = char>) -> Option<u64> {
    characters.map(|character| character.to_digit(36)).try_fold(0, |remainder, value| {
        let value = u64::from(value?);
        Some((remainder * if value > 9 { 100 } else { 10 } + value) % 97)
    })
}

/// The number that digits write.
pub(super) fn number(digits: &[u32]) -> u64 {
    digits.iter().fold(0, |number, digit| number * 10 + u64::from(*digit))
}

/// ISO/IEC 7064, MOD 11,10: the last digit checks the others.
pub(super) fn mod_11_10(digits: &[u32]) -> bool {
    let Some((check, body)) = digits.split_last() else { return false };
    let product = body.iter().fold(10, |product, digit| {
        let sum = (digit + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    (11 - product) % 10 == *check
}

/// Verhoeff's dihedral checksum.
pub(super) fn verhoeff(digits: &[u32]) -> bool {
    const PERMUTATION: [u32; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let multiply = |a: u32, b: u32| match (a < 5, b < 5) {
        (true, true) => (a + b) % 5,
        (true, false) => 5 + (a + b) % 5,
        (false, true) => 5 + (a - 5 + 5 - b) % 5,
        (false, false) => (a + 5 - b) % 5,
    };
    let check = digits.iter().rev().enumerate().fold(0, |check, (index, digit)| {
        let permuted = (0..index % 8).fold(*digit, |digit, _| PERMUTATION[digit as usize]);
        multiply(check, permuted)
    });
    check == 0
}

/// The check digit of machine-readable travel documents: weights 7, 3, 1, letters from 10 on, `<` as nothing.
pub(super) fn travel_document(field: &str) -> Option<u32> {
    let sum = field.chars().zip([7, 3, 1].into_iter().cycle()).try_fold(0, |sum, (character, weight)| {
        let value = if character == '<' { 0 } else { character.to_digit(36)? };
        Some(sum + value * weight)
    })?;
    Some(sum % 10)
}

/// Whether a day and a month can be.
pub(super) fn is_day(day: u32, month: u32) -> bool {
    (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (day < 31 || ![4, 6, 9, 11].contains(&month))
        && (day < 30 || month != 2)
}

/// The two digits at an index as a number.
pub(super) fn pair(digits: &[u32], index: usize) -> u32 {
    digits.get(index).zip(digits.get(index + 1)).map_or(0, |(tens, units)| tens * 10 + units)
}
