//! Identity numbers of Central, Western and Southern Europe.

use super::{
    checksums::{is_day, luhn, mod_11_10, number, pair, travel_document, weighted},
    number::{Context, Notation, Number},
};

pub(super) const NUMBERS: &[Number] = &[
    Number {
        name: "uk_nino",
        pattern: r"[A-Z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]",
        check: uk_nino,
        context: Context::UnlessGrouped(&["national insurance", "nino", "ni number", "ni no", "n.i."]),
        matches: &["{{id:uk_nino:spaces}}", "NI number {{id:uk_nino}}"],
        misses: &["part {{id:uk_nino}}", "National Insurance BG 12 34 56 A"],
    },
    Number {
        name: "uk_nhs",
        pattern: r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}",
        check: |written| {
            let digits = written.digits();
            let check = (11 - weighted(&digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 11;
            written.when(check == digits[9])
        },
        context: Context::Needed(&["nhs"]),
        matches: &["NHS number: {{id:uk_nhs}}"],
        misses: &["phone {{id:uk_nhs}}"],
    },
    Number {
        name: "de_tax_id",
        pattern: r"[1-9][0-9] ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}",
        check: |written| {
            let digits = written.digits();
            let mut counts = [0; 10];
            digits[..10].iter().for_each(|digit| counts[*digit as usize] += 1);
            let repeats = counts.iter().filter(|count| **count > 1).count();
            written.when(mod_11_10(&digits) && repeats == 1 && counts.iter().all(|count| *count < 4))
        },
        context: Context::Needed(&[
            "steuer",
            "idnr",
            "id-nr",
            "identifikationsnummer",
            "tax id",
            "TIN",
            "tax identification",
        ]),
        matches: &["Steuer-ID: {{id:de_tax_id}}"],
        misses: &["Kundennummer {{id:de_tax_id}}"],
    },
    Number {
        name: "de_social_insurance",
        pattern: r"[0-9]{2} ?[0-9]{6} ?[A-Z] ?[0-9]{3}",
        check: de_social_insurance,
        context: Context::Needed(&[
            "sozialversicherung",
            "rentenversicherung",
            "sv-nummer",
            "versicherungsnummer",
            "svnr",
            "rvnr",
            "sv-nr",
            "social security",
        ]),
        matches: &["Sozialversicherungsnummer {{id:de_social_insurance}}"],
        misses: &["Teil {{id:de_social_insurance}}"],
    },
    Number {
        name: "de_id_card",
        pattern: r"[CFGHJKLMNPRTVWXYZ][CFGHJKLMNPRTVWXYZ0-9]{8}[0-9]?",
        check: |written| {
            let (body, check) = written.dense.split_at_checked(9)?;
            let has_digit = body.bytes().filter(u8::is_ascii_digit).count() > 1;
            let valid = check.is_empty() || travel_document(body) == check.parse().ok();
            written.when(has_digit && valid)
        },
        context: Context::Needed(&[
            "personalausweis",
            "ausweisnummer",
            "ausweis-nr",
            "reisepass",
            "passnummer",
            "identity card",
            "id card",
        ]),
        matches: &["Personalausweis {{id:de_id_card}}"],
        misses: &["Vertrag {{id:de_id_card}}"],
    },
    Number {
        name: "fr_nir",
        pattern: r"[1278] ?[0-9]{2} ?[0-9]{2} ?(?:[0-9]{2}|2[AB]) ?[0-9]{3} ?[0-9]{3}(?: ?| ?/ ?| clé )[0-9]{2}",
        check: fr_nir,
        context: Context::Free,
        matches: &["{{id:fr_nir}}", "{{id:fr_nir:spaces}}"],
        misses: &["1 84 12 76 451 089 00"],
    },
    Number {
        name: "es_dni",
        pattern: r"[0-9]{8} ?-?[A-Z]",
        check: |written| spanish(&written.dense, &written.dense).and_then(|()| written.when(true)),
        context: Context::Needed(&["dni", "nif", "d.n.i", "n.i.f", "documento", "identidad", "titular"]),
        matches: &["DNI {{id:es_dni}}"],
        misses: &["pieza {{id:es_dni}}"],
    },
    Number {
        name: "es_nie",
        pattern: r"[XYZ] ?-?[0-9]{7} ?-?[A-Z]",
        check: |written| {
            let first = written.dense.chars().next()?;
            let digit = ["X", "Y", "Z"].iter().position(|letter| first.to_string() == **letter)?;
            spanish(&format!("{digit}{}", &written.dense[1..]), &written.dense)
                .and_then(|()| written.when(true))
        },
        context: Context::Needed(&["nie", "n.i.e", "extranjer", "documento", "identidad", "nif", "dni"]),
        matches: &["NIE: {{id:es_nie}}"],
        misses: &["modelo {{id:es_nie}}"],
    },
    Number {
        name: "it_codice_fiscale",
        pattern: r"[A-Za-z]{6}[0-9]{2}[A-Za-z][0-9]{2}[A-Za-z][0-9]{3}[A-Za-z]",
        check: it_codice_fiscale,
        context: Context::Free,
        matches: &["{{id:it_codice_fiscale}}"],
        misses: &["RSSMRA85T10A562A"],
    },
    Number {
        name: "nl_bsn",
        pattern: r"[0-9]{4}[ .]?[0-9]{2}[ .]?[0-9]{3}|[0-9]{3}[ .][0-9]{3}[ .][0-9]{3}",
        check: |written| {
            let digits = written.digits();
            let sum = weighted(&digits, &[9, 8, 7, 6, 5, 4, 3, 2, 10]);
            written.when(sum > 0 && sum.is_multiple_of(11))
        },
        context: Context::Needed(&["bsn", "burgerservice", "sofinummer", "sofi"]),
        matches: &["BSN {{id:nl_bsn}}"],
        misses: &["klant {{id:nl_bsn}}"],
    },
    Number {
        name: "be_national_number",
        pattern: r"[0-9]{2}[. ]?[0-9]{2}[. ]?[0-9]{2}[- ]?[0-9]{3}[. ]?[0-9]{2}",
        check: |written| {
            let digits = written.digits();
            let (body, check) = (number(&digits[..9]), number(&digits[9..]));
            let valid = [body, body + 2_000_000_000].iter().any(|body| 97 - body % 97 == check);
            written.when(valid && is_day(pair(&digits, 4), pair(&digits, 2)))
        },
        context: Context::UnlessGrouped(&[
            "rijksregister",
            "registre national",
            "national number",
            "numéro national",
            "insz",
            "niss",
            "nationaal",
        ]),
        matches: &["{{id:be_national_number:dots}}", "rijksregisternummer {{id:be_national_number}}"],
        misses: &["dossier {{id:be_national_number}}"],
    },
    Number {
        name: "pt_nif",
        pattern: r"[1-3][0-9]{2}[ .]?[0-9]{3}[ .]?[0-9]{3}",
        check: |written| {
            let digits = written.digits();
            let rest = weighted(&digits, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11;
            written.when(digits[8] == if rest < 2 { 0 } else { 11 - rest })
        },
        context: Context::Needed(&["nif", "contribuinte", "número fiscal"]),
        matches: &["NIF {{id:pt_nif}}"],
        misses: &["telefone {{id:pt_nif}}"],
    },
    Number {
        name: "ch_ahv",
        pattern: r"756[. ]?[0-9]{4}[. ]?[0-9]{4}[. ]?[0-9]{2}",
        check: |written| {
            let digits = written.digits();
            written.when(weighted(&digits, &[1, 3].repeat(7)).is_multiple_of(10))
        },
        context: Context::Free,
        matches: &["{{id:ch_ahv:dots}}", "{{id:ch_ahv}}"],
        misses: &["756.1234.5678.90"],
    },
    Number {
        name: "at_social_insurance",
        pattern: r"[1-9][0-9]{3}[ /-]?[0-9]{6}",
        check: |written| {
            let digits = written.digits();
            let sum = weighted(&digits, &[3, 7, 9, 0, 5, 8, 4, 2, 1, 6]);
            written.when(
                sum % 11 == digits[3]
                    && (1..=31).contains(&pair(&digits, 4))
                    && (1..=15).contains(&pair(&digits, 6)),
            )
        },
        context: Context::Needed(&[
            "sozialversicherung",
            "svnr",
            "sv-nr",
            "sv-nummer",
            "versicherungsnummer",
            "sv nummer",
        ]),
        matches: &["SVNR {{id:at_social_insurance}}"],
        misses: &["Tel. {{id:at_social_insurance}}"],
    },
    Number {
        name: "ie_pps",
        pattern: r"[0-9]{7}[A-W][A-IW]?",
        check: |written| {
            let letters: Vec<u32> = written.dense[7..]
                .chars()
                .filter_map(|letter| letter.to_digit(36))
                .map(|value| value - 9)
                .collect();
            let extra = letters.get(1).map_or(0, |letter| if *letter == 23 { 0 } else { *letter });
            let rest = (weighted(&written.digits(), &[8, 7, 6, 5, 4, 3, 2]) + extra * 9) % 23;
            written.when(letters[0] == if rest == 0 { 23 } else { rest })
        },
        context: Context::Needed(&["pps", "ppsn"]),
        matches: &["PPS number {{id:ie_pps}}"],
        misses: &["lot {{id:ie_pps}}"],
    },
    Number {
        name: "tr_kimlik",
        pattern: r"[1-9][0-9]{10}",
        check: |written| {
            let digits = written.digits();
            let odd: u32 = digits[..9].iter().step_by(2).sum();
            let even: u32 = digits[1..8].iter().step_by(2).sum();
            let tenth = (odd * 7 + 10 * even - even) % 10;
            let sum: u32 = digits[..10].iter().sum();
            written.when(tenth == digits[9] && sum % 10 == digits[10])
        },
        context: Context::Needed(&["kimlik", "tckn", "t.c.", "tc no"]),
        matches: &["T.C. kimlik no {{id:tr_kimlik}}"],
        misses: &["telefon {{id:tr_kimlik}}"],
    },
    Number {
        name: "il_id",
        pattern: r"[0-9]{9}",
        check: |written| written.when(luhn(&written.digits()) && written.dense != "000000000"),
        context: Context::Needed(&["teudat", "israeli id", "israel id", "ת.ז", "ת\"ז", "זהות"]),
        matches: &["Teudat Zehut {{id:il_id}}"],
        misses: &["account {{id:il_id}}"],
    },
];

fn uk_nino(written: &Notation<'_>) -> Option<usize> {
    let (prefix, rest) = written.dense.split_at_checked(2)?;
    let mut letters = prefix.chars();
    let first = letters.next().is_some_and(|letter| !"DFIQUV".contains(letter));
    let second = letters.next().is_some_and(|letter| !"DFIOQUV".contains(letter));
    let valid = first && second && !["BG", "GB", "NK", "KN", "TN", "NT", "ZZ"].contains(&prefix);
    written.when(valid && !rest.starts_with("000000"))
}

fn de_social_insurance(written: &Notation<'_>) -> Option<usize> {
    let letter = written.dense.chars().nth(8)?.to_digit(36)? - 9;
    let mut digits = written.digits();
    digits.splice(8..8, [letter / 10, letter % 10]);
    let sum: u32 = digits
        .iter()
        .zip([2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1])
        .map(|(digit, weight)| digit * weight / 10 + digit * weight % 10)
        .sum();
    written.when(sum % 10 == digits[12] && (1..=12).contains(&pair(&digits, 4)))
}

fn fr_nir(written: &Notation<'_>) -> Option<usize> {
    let corsica = written.dense.replace("2A", "19").replace("2B", "18");
    let digits: Vec<u32> = corsica.chars().filter_map(|digit| digit.to_digit(10)).collect();
    if digits.len() != 15 {
        return None;
    }
    let month = pair(&digits, 3);
    let is_month = (1..=12).contains(&month) || (20..=42).contains(&month) || month >= 50;
    written.when(is_month && 97 - number(&digits[..13]) % 97 == number(&digits[13..]))
}

/// The last letter of a Spanish number follows from its digits.
fn spanish(number: &str, dense: &str) -> Option<()> {
    let letters = b"TRWAGMYFPDXBNJZSQVHLCKE";
    let digits: usize = number.get(..8)?.parse().ok()?;
    (dense.as_bytes().get(dense.len() - 1) == letters.get(digits % 23)).then_some(())
}

fn it_codice_fiscale(written: &Notation<'_>) -> Option<usize> {
    const ODD: [u32; 36] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12,
        14, 16, 10, 22, 25, 24, 23,
    ];
    let values: Vec<u32> = written.dense.chars().filter_map(|character| character.to_digit(36)).collect();
    let (check, body) = values.split_last()?;
    let sum: u32 = body
        .iter()
        .enumerate()
        .map(|(index, value)| {
            if index % 2 == 0 {
                ODD[*value as usize]
            } else if *value > 9 {
                value - 10
            } else {
                *value
            }
        })
        .sum();
    let month = "ABCDEHLMPRST".contains(written.dense.chars().nth(8)?);
    written.when(month && sum % 26 + 10 == *check)
}
