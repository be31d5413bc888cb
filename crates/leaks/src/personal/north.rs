//! Identity numbers of Northern and Eastern Europe.

use super::{
    checksums::{is_day, luhn, number, pair, weighted},
    number::{Context, Notation, Number},
};

pub(super) const NUMBERS: &[Number] = &[
    Number {
        name: "pl_pesel",
        pattern: r"[0-9]{11}",
        check: |written| {
            let digits = written.digits();
            let valid = weighted(&digits, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]).is_multiple_of(10);
            written.when(valid && is_day(pair(&digits, 4), pair(&digits, 2) % 20))
        },
        context: Context::Needed(&["pesel"]),
        matches: &["PESEL: {{id:pl_pesel}}"],
        misses: &["konto {{id:pl_pesel}}"],
    },
    Number {
        name: "se_personnummer",
        pattern: r"(?:[0-9]{2})?[0-9]{6}[-+ ]?[0-9]{4}",
        check: |written| {
            let digits = written.digits();
            let short = &digits[digits.len() - 10..];
            written.when(luhn(short) && is_day(pair(short, 4) % 60, pair(short, 2)))
        },
        context: Context::Needed(&[
            "personnummer",
            "personnr",
            "pers.nr",
            "personal number",
            "personal identity",
            "samordningsnummer",
            "pnr",
        ]),
        matches: &["personnummer {{id:se_personnummer}}"],
        misses: &["tel {{id:se_personnummer}}"],
    },
    Number {
        name: "no_fodselsnummer",
        pattern: r"[0-9]{6} ?[0-9]{5}",
        check: |written| {
            let digits = written.digits();
            let first = weighted(&digits, &[3, 7, 6, 1, 8, 9, 4, 5, 2, 1]) % 11;
            let second = weighted(&digits, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1]) % 11;
            written.when(first == 0 && second == 0 && is_day(pair(&digits, 0) % 40, pair(&digits, 2)))
        },
        context: Context::UnlessGrouped(&[
            "fødselsnummer",
            "personnummer",
            "fnr",
            "fodselsnummer",
            "national identity",
            "d-nummer",
        ]),
        matches: &["fødselsnummer {{id:no_fodselsnummer}}"],
        misses: &["kontonummer {{id:no_fodselsnummer}}"],
    },
    Number {
        name: "dk_cpr",
        pattern: r"[0-9]{6}[- ]?[0-9]{4}",
        check: |written| {
            let digits = written.digits();
            written.when(is_day(pair(&digits, 0), pair(&digits, 2)))
        },
        context: Context::Needed(&["cpr", "cpr-nr", "cpr-nummer", "cpr.nr"]),
        matches: &["CPR-nummer {{id:dk_cpr}}"],
        misses: &["tlf {{id:dk_cpr}}"],
    },
    Number {
        name: "fi_hetu",
        pattern: r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-Y]",
        check: fi_hetu,
        context: Context::Free,
        matches: &["{{id:fi_hetu}}"],
        misses: &["131052-308A"],
    },
    Number {
        name: "cz_rodne_cislo",
        pattern: r"[0-9]{6}/[0-9]{4}",
        check: |written| {
            let digits = written.digits();
            let month = pair(&digits, 2) % 50;
            let month = if month > 20 { month - 20 } else { month };
            written.when(number(&digits).is_multiple_of(11) && is_day(pair(&digits, 4), month))
        },
        context: Context::Needed(&["rodné", "rodne", "r.č", "rč", "r. č", "birth number"]),
        matches: &["rodné číslo {{id:cz_rodne_cislo}}"],
        misses: &["čj. {{id:cz_rodne_cislo}}"],
    },
    Number {
        name: "ro_cnp",
        pattern: r"[1-9][0-9]{12}",
        check: |written| {
            let digits = written.digits();
            let rest = weighted(&digits, &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11;
            written.when(
                digits[12] == if rest == 10 { 1 } else { rest } && is_day(pair(&digits, 5), pair(&digits, 3)),
            )
        },
        context: Context::Needed(&["cnp", "cod numeric"]),
        matches: &["CNP {{id:ro_cnp}}"],
        misses: &["cod {{id:ro_cnp}}"],
    },
];

fn fi_hetu(written: &Notation<'_>) -> Option<usize> {
    let characters = b"0123456789ABCDEFHJKLMNPRSTUVWXY";
    let all = written.raw.as_bytes();
    let digits: Vec<u32> = written.raw[..6]
        .chars()
        .chain(written.raw[7..10].chars())
        .filter_map(|digit| digit.to_digit(10))
        .collect();
    let check = usize::try_from(number(&digits) % 31).ok()?;
    written.when(all.get(10) == characters.get(check) && is_day(pair(&digits, 0), pair(&digits, 2)))
}
