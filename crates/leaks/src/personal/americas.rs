//! Identity numbers of the Americas.

use super::{
    checksums::{is_day, luhn, pair, weighted},
    number::{Context, Notation, Number},
};

pub(super) const NUMBERS: &[Number] = &[
    Number {
        name: "us_ssn",
        pattern: r"[0-9]{3}[- .]?[0-9]{2}[- .]?[0-9]{4}",
        check: us_ssn,
        context: Context::Needed(&[
            "ssn",
            "social security",
            "seguro social",
            "itin",
            "taxpayer",
            "ss#",
            "soc sec",
            "ssns",
            "socials",
        ]),
        matches: &["SSN: {{id:us_ssn}}"],
        misses: &["SSN: 000-12-3456", "SSN: 666-12-3456", "part {{id:us_ssn}}"],
    },
    Number {
        name: "ca_sin",
        pattern: r"[0-9]{3}[- ]?[0-9]{3}[- ]?[0-9]{3}",
        check: |written| written.when(luhn(&written.digits())),
        context: Context::Needed(&["SIN", "social insurance", "assurance sociale", "NAS"]),
        matches: &["SIN {{id:ca_sin}}"],
        misses: &["phone {{id:ca_sin}}"],
    },
    Number {
        name: "br_cpf",
        pattern: r"[0-9]{3}\.?[0-9]{3}\.?[0-9]{3}-?[0-9]{2}",
        check: |written| {
            let digits = written.digits();
            let check = |length: usize| {
                let sum: u32 =
                    digits[..length].iter().rev().zip(2..).map(|(digit, weight)| digit * weight).sum();
                sum * 10 % 11 % 10
            };
            let differs = digits.iter().any(|digit| *digit != digits[0]);
            written.when(differs && check(9) == digits[9] && check(10) == digits[10])
        },
        context: Context::UnlessGrouped(&["cpf", "cadastro de pessoa"]),
        matches: &["{{id:br_cpf:dots}}", "CPF {{id:br_cpf}}"],
        misses: &["protocolo {{id:br_cpf}}", "111.111.111-11"],
    },
    Number {
        name: "mx_curp",
        pattern: r"[A-Z]{4}[0-9]{6}[HMX][A-Z]{5}[A-Z0-9][0-9]",
        check: mx_curp,
        context: Context::Free,
        matches: &["{{id:mx_curp}}"],
        misses: &["BOXW310820HNERXN00"],
    },
    Number {
        name: "cl_rut",
        pattern: r"[0-9]{1,2}\.?[0-9]{3}\.?[0-9]{3}-[0-9Kk]",
        check: |written| {
            let (check, body) = written.dense.as_bytes().split_last()?;
            let digits: Vec<u32> = body.iter().rev().map(|digit| u32::from(digit - b'0')).collect();
            let rest = 11 - weighted(&digits, &[2, 3, 4, 5, 6, 7, 2, 3, 4]) % 11;
            let wanted = match rest {
                11 => b'0',
                10 => b'K',
                other => b'0' + u8::try_from(other).ok()?,
            };
            written.when(*check == wanted)
        },
        context: Context::Needed(&["rut", "r.u.t", "cédula", "RUN"]),
        matches: &["RUT {{id:cl_rut}}"],
        misses: &["folio {{id:cl_rut}}"],
    },
];

/// Ranges that were given out, also those of taxpayers without social security.
fn us_ssn(written: &Notation<'_>) -> Option<usize> {
    let digits = written.digits();
    let area = digits[0] * 100 + pair(&digits, 1);
    let (group, serial) = (pair(&digits, 3), pair(&digits, 5) * 100 + pair(&digits, 7));
    let itin = area >= 900 && group >= 50;
    let well_known = ["123456789", "078051120", "219099999", "987654321"].contains(&written.dense.as_str());
    written.when(area != 0 && area != 666 && (area < 900 || itin) && group != 0 && serial != 0 && !well_known)
}

fn mx_curp(written: &Notation<'_>) -> Option<usize> {
    // The alphabet has Ñ behind N, which moves the letters from O on by one.
    let value =
        |character: char| character.to_digit(36).map(|value| if character > 'N' { value + 1 } else { value });
    let digits: Vec<u32> = written.dense[4..10].chars().filter_map(|digit| digit.to_digit(10)).collect();
    let sum = written
        .dense
        .chars()
        .take(17)
        .zip((2..=18).rev())
        .try_fold(0, |sum, (character, weight)| Some(sum + value(character)? * weight))?;
    let check = written.dense.chars().nth(17)?.to_digit(10)?;
    written.when((10 - sum % 10) % 10 == check && is_day(pair(&digits, 4), pair(&digits, 2)))
}
