//! Numbers that all countries share: payment cards, IBANs, machine-readable travel documents.

use super::{
    checksums::{is_day, luhn, pair, remainder_97, travel_document},
    number::{Context, Notation, Number, has_word},
};

pub(super) const CARD: &str = "payment_card";

pub(super) const NUMBERS: &[Number] = &[
    Number {
        name: CARD,
        pattern: r"[0-9]{4}(?:-[0-9]{4}){3}|[0-9]{4}(?: [0-9]{4}){3}|[0-9]{4}(?:\.[0-9]{4}){3}|[0-9]{4}(?:  ?[0-9]{4}){3}",
        check: grouped_card,
        context: Context::Free,
        matches: &["{{card:visa:spaces}}", "{{card:mastercard:dashes}}, exp 04/29"],
        misses: &["{{digits:4}} {{digits:4}} {{digits:4}}", "0000 0000 0000 0000"],
    },
    Number {
        name: CARD,
        pattern: r"3[0-9]{3}[ -][0-9]{6}[ -][0-9]{4,5}",
        check: grouped_card,
        context: Context::Free,
        matches: &["{{card:amex:spaces}}"],
        misses: &[],
    },
    Number {
        name: CARD,
        pattern: r"[0-9]{13,19}",
        check: plain_card,
        context: Context::Free,
        matches: &["card {{card:visa}}", "{{card:amex}}", "{{card:discover}}"],
        misses: &["order {{card:visa}}", "4111111111111112", "tracking number {{card:mastercard}}"],
    },
    Number {
        name: "iban",
        pattern: r"[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]){11,30}",
        check: iban,
        context: Context::Free,
        matches: &["{{iban:DE}}", "{{iban:FR:spaces}} BIC BNPAFRPP", "{{iban:ES:spaces}}", "{{iban:NO}}"],
        misses: &["DE00 3704 0044 0532 0130 00", "US64SVBKUS6S3300958879"],
    },
    Number {
        name: "passport_mrz",
        pattern: r"[A-Z0-9<]{9}[0-9][A-Z<]{3}[0-9]{7}[MFX<][0-9]{7}[A-Z0-9<]{14}[0-9<][0-9]",
        check: passport,
        context: Context::Free,
        matches: &["{{mrz}}"],
        misses: &["L898902C36UTO7408122F1204159ZE184226B<<<<<11"],
    },
];

/// Length of the IBANs of each country.
const IBAN_LENGTHS: &[(&str, usize)] = &[
    ("AD", 24),
    ("AE", 23),
    ("AL", 28),
    ("AT", 20),
    ("AZ", 28),
    ("BA", 20),
    ("BE", 16),
    ("BG", 22),
    ("BH", 22),
    ("BR", 29),
    ("BY", 28),
    ("CH", 21),
    ("CR", 22),
    ("CY", 28),
    ("CZ", 24),
    ("DE", 22),
    ("DK", 18),
    ("DO", 28),
    ("EE", 20),
    ("EG", 29),
    ("ES", 24),
    ("FI", 18),
    ("FO", 18),
    ("FR", 27),
    ("GB", 22),
    ("GE", 22),
    ("GI", 23),
    ("GL", 18),
    ("GR", 27),
    ("GT", 28),
    ("HR", 21),
    ("HU", 28),
    ("IE", 22),
    ("IL", 23),
    ("IQ", 23),
    ("IS", 26),
    ("IT", 27),
    ("JO", 30),
    ("KW", 30),
    ("KZ", 20),
    ("LB", 28),
    ("LC", 32),
    ("LI", 21),
    ("LT", 20),
    ("LU", 20),
    ("LV", 21),
    ("LY", 25),
    ("MC", 27),
    ("MD", 24),
    ("ME", 22),
    ("MK", 19),
    ("MR", 27),
    ("MT", 31),
    ("MU", 30),
    ("NL", 18),
    ("NO", 15),
    ("PK", 24),
    ("PL", 28),
    ("PS", 29),
    ("PT", 25),
    ("QA", 29),
    ("RO", 24),
    ("RS", 22),
    ("SA", 24),
    ("SC", 31),
    ("SE", 24),
    ("SI", 19),
    ("SK", 24),
    ("SM", 27),
    ("ST", 25),
    ("SV", 28),
    ("TL", 23),
    ("TN", 24),
    ("TR", 26),
    ("UA", 29),
    ("VA", 22),
    ("VG", 24),
    ("XK", 20),
];

/// Words that say a long number is that of something else.
const OTHER_NUMBERS: &[&str] = &[
    "order",
    "tracking",
    "invoice",
    "isbn",
    "imei",
    "ean",
    "gtin",
    "upc",
    "shipment",
    "parcel",
    "serial",
    "ticket",
    "reference",
    "bestell",
    "sendung",
    "rechnung",
    "auftrag",
    "referenz",
    "paket",
    "commande",
    "suivi",
    "facture",
    "colis",
    "pedido",
    "seguimiento",
    "factura",
    "envío",
    "envio",
    "ordine",
    "spedizione",
    "transaction",
    "txn",
    "timestamp",
    "case",
    "id",
    "uid",
    "no.",
    "ref",
    "epoch",
    "sku",
    "barcode",
    "phone",
    "tel",
    "fax",
    "msg",
    "message",
    "trace",
    "vin",
    "session",
    "request",
    "booking",
    "awb",
    "kundennummer",
    "vorgang",
    "aktenzeichen",
];

/// How near such a word must be to a number that is grouped like a card's.
const NEAR_BYTES: usize = 24;

/// Words that say it is a card's.
const CARD_WORDS: &[&str] = &[
    "card",
    "karte",
    "carte",
    "tarjeta",
    "carta",
    "cartão",
    "kaart",
    "visa",
    "master",
    "amex",
    "american express",
    "pan",
    "cvv",
    "cvc",
    "credit",
    "kredit",
    "crédit",
    "crédito",
    "zahlung",
    "discover",
    "maestro",
    "カード",
    "卡",
];

fn is_issued(dense: &str) -> bool {
    let head =
        |length: usize| dense.get(..length).and_then(|head| head.parse::<u32>().ok()).unwrap_or_default();
    let (two, three, four) = (head(2), head(3), head(4));
    match dense.len() {
        13 => dense.starts_with('4'),
        14 => (300..=305).contains(&three) || matches!(two, 36 | 38 | 39),
        15 => matches!(two, 34 | 37),
        16 => {
            dense.starts_with('4')
                || (51..=55).contains(&two)
                || (2221..=2720).contains(&four)
                || (2200..=2204).contains(&four)
                || (3528..=3589).contains(&four)
                || four == 6011
                || (644..=649).contains(&three)
                || matches!(two, 36 | 50 | 56 | 57 | 58 | 60 | 62 | 65 | 67 | 81)
        }
        19 => dense.starts_with('4') || four == 6011 || matches!(two, 62 | 65),
        17 | 18 => two == 62,
        _ => false,
    }
}

fn is_card(written: &Notation<'_>) -> bool {
    let mut digits = written.digits();
    let valid = is_issued(&written.dense) && luhn(&digits);
    digits.sort_unstable();
    digits.dedup();
    valid && digits.len() > 1
}

fn grouped_card(written: &Notation<'_>) -> Option<usize> {
    let mut before = written.line.chars().rev();
    let (joint, last) = (before.next(), before.next());
    let is_tail = matches!(joint, Some(' ' | '-' | '.'))
        && last.is_some_and(|last| last.is_ascii_digit())
        && written.raw.contains(joint.unwrap_or_default());
    let near = written.line.len().saturating_sub(NEAR_BYTES);
    let is_other = names_other(&written.line[written.line.floor_char_boundary(near)..]);
    written.when(is_card(written) && (!is_tail && !is_other || is_called_card(written.line)))
}

/// Whether a text says that the number behind it is that of something else.
fn names_other(line: &str) -> bool {
    let line = line.to_lowercase();
    OTHER_NUMBERS.iter().any(|word| has_word(&line, word))
}

fn is_called_card(line: &str) -> bool {
    let line = line.to_lowercase();
    CARD_WORDS.iter().any(|word| has_word(&line, word))
}

fn plain_card(written: &Notation<'_>) -> Option<usize> {
    let line = written.line.to_lowercase();
    let is_other = names_other(&line);
    let is_weak = matches!(written.dense.len(), 13 | 14 | 17..=19);
    let counts = is_called_card(&line) || !is_other && !is_weak;
    written.when(counts && is_card(written))
}

fn iban(written: &Notation<'_>) -> Option<usize> {
    let country = written.dense.get(..2)?;
    let (_, length) = IBAN_LENGTHS.iter().find(|(known, _)| *known == country)?;
    let iban = written.dense.get(..*length)?;
    let turned = iban[4..].chars().chain(iban[..4].chars());
    let zeroes = iban[4..].chars().all(|character| character == '0');
    (remainder_97(turned)? == 1 && !zeroes).then_some(*length)
}

fn passport(written: &Notation<'_>) -> Option<usize> {
    let line = written.raw;
    let checks = |field: &str, check: usize| {
        travel_document(field) == line.as_bytes().get(check).and_then(|byte| char::from(*byte).to_digit(10))
    };
    let digits: Vec<u32> = line.get(13..19)?.chars().filter_map(|digit| digit.to_digit(10)).collect();
    let born = is_day(pair(&digits, 4), pair(&digits, 2));
    let composite = format!("{}{}{}", line.get(..10)?, line.get(13..20)?, line.get(21..43)?);
    let valid = born
        && checks(&composite, 43)
        && checks(line.get(..9)?, 9)
        && checks(line.get(13..19)?, 19)
        && checks(line.get(21..27)?, 27);
    valid.then_some(line.len())
}
