//! Identity numbers of Africa, Asia and Australia.

use super::{
    checksums::{is_day, luhn, pair, verhoeff, weighted},
    number::{Context, Notation, Number},
};

pub(super) const NUMBERS: &[Number] = &[
    Number {
        name: "cn_resident_id",
        pattern: r"[1-9][0-9]{16}[0-9Xx]",
        check: cn_resident_id,
        context: Context::Free,
        matches: &["{{id:cn_resident_id}}"],
        misses: &["110105194912310021"],
    },
    Number {
        name: "kr_rrn",
        pattern: r"[0-9]{6}-[1-8][0-9]{6}",
        check: |written| {
            let digits = written.digits();
            let check = (11 - weighted(&digits, &[2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]) % 11) % 10;
            let is_named = written.line.contains("주민");
            written.when(is_day(pair(&digits, 4), pair(&digits, 2)) && (check == digits[12] || is_named))
        },
        context: Context::Free,
        matches: &["{{id:kr_rrn}}"],
        misses: &["991399-1234567"],
    },
    Number {
        name: "jp_my_number",
        pattern: r"[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}",
        check: |written| {
            let digits = written.digits();
            let rest = weighted(&digits, &[6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
            written.when(digits[11] == if rest <= 1 { 0 } else { 11 - rest })
        },
        context: Context::Needed(&["マイナンバー", "個人番号", "my number", "individual number"]),
        matches: &["マイナンバー {{id:jp_my_number}}"],
        misses: &["注文 {{id:jp_my_number}}"],
    },
    Number {
        name: "in_aadhaar",
        pattern: r"[2-9][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}",
        check: |written| written.when(verhoeff(&written.digits())),
        context: Context::Needed(&["aadhaar", "aadhar", "uidai", "UID", "आधार"]),
        matches: &["Aadhaar {{id:in_aadhaar}}"],
        misses: &["order {{id:in_aadhaar}}"],
    },
    Number {
        name: "in_pan",
        pattern: r"[A-Z]{3}[ABCFGHLJPT][A-Z][0-9]{4}[A-Z]",
        check: |written| written.when(!written.raw.contains("0000")),
        context: Context::Needed(&["PAN", "permanent account", "income tax"]),
        matches: &["PAN {{id:in_pan}}"],
        misses: &["coupon {{id:in_pan}}"],
    },
    Number {
        name: "sg_nric",
        pattern: r"[STFGM][0-9]{7}[A-Z]",
        check: sg_nric,
        context: Context::Needed(&[
            "nric",
            "FIN",
            "identity card",
            "ic no",
            "ic number",
            "identification",
            "IC",
        ]),
        matches: &["NRIC {{id:sg_nric}}"],
        misses: &["model {{id:sg_nric}}"],
    },
    Number {
        name: "au_tfn",
        pattern: r"[0-9]{3} ?[0-9]{3} ?[0-9]{2,3}",
        check: |written| {
            let digits = written.digits();
            let weights: &[u32] =
                if digits.len() == 9 { &[1, 4, 3, 7, 5, 8, 6, 9, 10] } else { &[10, 7, 8, 4, 6, 3, 5, 1] };
            let sum = weighted(&digits, weights);
            written.when(sum > 0 && sum.is_multiple_of(11))
        },
        context: Context::Needed(&["tfn", "tax file"]),
        matches: &["TFN {{id:au_tfn}}"],
        misses: &["fax {{id:au_tfn}}"],
    },
    Number {
        name: "au_medicare",
        pattern: r"[2-6][0-9]{3} ?[0-9]{5} ?[0-9](?:[ /-]?[0-9])?",
        check: |written| {
            let digits = written.digits();
            written.when(weighted(&digits, &[1, 3, 7, 9, 1, 3, 7, 9]) % 10 == digits[8])
        },
        context: Context::Needed(&["medicare"]),
        matches: &["Medicare {{id:au_medicare}}"],
        misses: &["ref {{id:au_medicare}}"],
    },
    Number {
        name: "za_id",
        pattern: r"[0-9]{6} ?[0-9]{4} ?[01][0-9] ?[0-9]",
        check: |written| {
            let digits = written.digits();
            written.when(luhn(&digits) && is_day(pair(&digits, 4), pair(&digits, 2)))
        },
        context: Context::Needed(&[
            "id number",
            "id no",
            "identity number",
            "sa id",
            "rsa id",
            "south african id",
            "identity no",
        ]),
        matches: &["ID number {{id:za_id}}"],
        misses: &["ISBN {{id:za_id}}"],
    },
];

fn cn_resident_id(written: &Notation<'_>) -> Option<usize> {
    let checks = b"10X98765432";
    let digits = written.digits();
    let sum = weighted(&digits[..17], &[7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]);
    let century = matches!(pair(&digits, 6), 19 | 20);
    let valid = written.dense.as_bytes().last() == checks.get((sum % 11) as usize);
    written.when(valid && century && is_day(pair(&digits, 12), pair(&digits, 10)))
}

fn sg_nric(written: &Notation<'_>) -> Option<usize> {
    let (first, last) = (written.dense.chars().next()?, *written.dense.as_bytes().last()?);
    let sum = weighted(&written.digits(), &[2, 7, 6, 5, 4, 3, 2]);
    let (offset, letters) = match first {
        'S' => (0, b"JZIHGFEDCBA"),
        'T' => (4, b"JZIHGFEDCBA"),
        'F' => (0, b"XWUTRQPNMLK"),
        'G' => (4, b"XWUTRQPNMLK"),
        _ => (3, b"KLJNPQRTUWX"),
    };
    let index = ((sum + offset) % 11) as usize;
    let index = if first == 'M' { 10 - index } else { index };
    written.when(letters.get(index) == Some(&last))
}
