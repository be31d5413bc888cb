//! Identity numbers of nobody, made as their issuers describe them.

use super::Chance;

/// A number of a kind; the layout `spaces` or `dots` writes it in its usual groups.
pub(super) fn identity(kind: &str, layout: &str, chance: &mut Chance) -> Option<String> {
    let dense = central(kind, chance)
        .or_else(|| western(kind, chance))
        .or_else(|| northern(kind, chance))
        .or_else(|| other(kind, chance))
        .or_else(|| eastern(kind, chance))?;
    let cuts: &[(usize, &str)] = match (kind, layout) {
        ("uk_nino", "spaces") => &[(2, " "), (4, " "), (6, " "), (8, " ")],
        ("fr_nir", "spaces") => &[(1, " "), (3, " "), (5, " "), (7, " "), (10, " "), (13, " ")],
        ("be_national_number", "dots") => &[(2, "."), (4, "."), (6, "-"), (9, ".")],
        ("ch_ahv", "dots") => &[(3, "."), (7, "."), (11, ".")],
        ("br_cpf", "dots") => &[(3, "."), (6, "."), (9, "-")],
        ("de_tax_id", "spaces") => &[(2, " "), (5, " "), (8, " ")],
        ("uk_nhs" | "nl_bsn" | "ca_sin" | "au_tfn" | "pt_nif", "spaces") => &[(3, " "), (6, " ")],
        ("in_aadhaar" | "jp_my_number", "spaces") => &[(4, " "), (8, " ")],
        ("at_social_insurance", "spaces") => &[(4, " ")],
        ("no_fodselsnummer", "spaces") => &[(6, " ")],
        ("us_ssn", "") => &[(3, "-"), (5, "-")],
        ("dk_cpr" | "se_personnummer", "") => &[(6, "-")],
        _ => &[],
    };
    let mut text = String::new();
    for (index, character) in dense.chars().enumerate() {
        let joint = cuts.iter().find(|(at, _)| *at == index);
        text.push_str(joint.map_or("", |(_, joint)| joint));
        text.push(character);
    }
    Some(text)
}

fn text(digits: &[u32]) -> String {
    digits.iter().map(u32::to_string).collect()
}

fn dot(digits: &[u32], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| digit * weight).sum()
}

fn luhn_digit(digits: &[u32]) -> u32 {
    let doubled =
        digits.iter().rev().enumerate().map(|(index, digit)| if index % 2 == 0 { digit * 2 } else { *digit });
    (10 - doubled.map(|value| value / 10 + value % 10).sum::<u32>() % 10) % 10
}

/// Day, month and year of a birth, two digits each.
fn birth(chance: &mut Chance) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let two = |value: usize| vec![u32::try_from(value / 10).unwrap(), u32::try_from(value % 10).unwrap()];
    (two(1 + chance.below(28)), two(1 + chance.below(12)), two(50 + chance.below(49)))
}

/// Tries digits until one satisfies a rule.
fn until(chance: &mut Chance, length: usize, rule: impl Fn(&[u32]) -> bool) -> Vec<u32> {
    loop {
        let mut digits = chance.digits(length);
        digits[0] = digits[0].max(2);
        if rule(&digits) {
            return digits;
        }
    }
}

fn central(kind: &str, chance: &mut Chance) -> Option<String> {
    let (day, month, year) = birth(chance);
    Some(match kind {
        "uk_nino" => format!(
            "{}{}{}",
            chance.pick(&["AB", "JK", "PW", "SC"]),
            chance.text("123456789", 6),
            chance.text("ABCD", 1)
        ),
        "uk_nhs" => {
            text(&until(chance, 10, |all| dot(all, &[10, 9, 8, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11)))
        }
        "de_tax_id" => tax_id(chance),
        "de_social_insurance" => {
            let letter = chance.text("BCHKMSW", 1);
            let value = letter.chars().next()?.to_digit(36)? - 9;
            let mut all =
                [vec![1, 5], day, month, year, vec![value / 10, value % 10], chance.digits(2)].concat();
            let products =
                all.iter().zip([2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1]).map(|(digit, weight)| digit * weight);
            let check = products.map(|product| product / 10 + product % 10).sum::<u32>() % 10;
            all.push(check);
            format!("{}{letter}{}", text(&all[..8]), text(&all[10..]))
        }
        "de_id_card" => {
            let body =
                chance.text("CFGHJKLM", 1) + &chance.text("1234567CFGHJ", 6) + &chance.text("0123456789", 2);
            let values = body.chars().map(|character| character.to_digit(36).unwrap());
            let sum: u32 = values.zip([7, 3, 1].iter().cycle()).map(|(value, weight)| value * weight).sum();
            format!("{body}{}", sum % 10)
        }
        "fr_nir" => {
            let body =
                [vec![1 + u32::try_from(chance.below(2)).ok()?], year, month, vec![7, 5], chance.digits(6)]
                    .concat();
            let body = text(&body);
            format!("{body}{:02}", 97 - body.parse::<u64>().ok()? % 97)
        }
        "es_dni" => spanish(&chance.text("123456789", 8), ""),
        "es_nie" => {
            let first = chance.below(3);
            let rest = chance.text("123456789", 7);
            format!("{}{}", ["X", "Y", "Z"][first], &spanish(&format!("{first}{rest}"), "")[1..])
        }
        "it_codice_fiscale" => codice_fiscale(&year, chance),
        _ => return None,
    })
}

fn western(kind: &str, chance: &mut Chance) -> Option<String> {
    let (day, month, year) = birth(chance);
    Some(match kind {
        "nl_bsn" => text(&until(chance, 9, |all| dot(all, &[9, 8, 7, 6, 5, 4, 3, 2, 10]).is_multiple_of(11))),
        "be_national_number" => {
            let body = text(&[year, month, day, chance.digits(3)].concat());
            format!("{body}{:02}", 97 - body.parse::<u64>().ok()? % 97)
        }
        "pt_nif" => {
            let mut all = [vec![2], chance.digits(7)].concat();
            let rest = dot(&all, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11;
            all.push(if rest < 2 { 0 } else { 11 - rest });
            text(&all)
        }
        "ch_ahv" => {
            let mut all = [vec![7, 5, 6], chance.digits(9)].concat();
            let sum = dot(&all, &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3]);
            all.push((10 - sum % 10) % 10);
            text(&all)
        }
        "at_social_insurance" => loop {
            let serial = until(chance, 3, |_| true);
            let date = [day.clone(), month.clone(), year.clone()].concat();
            let check = (dot(&serial, &[3, 7, 9]) + dot(&date, &[5, 8, 4, 2, 1, 6])) % 11;
            if check < 10 {
                break text(&[serial, vec![check], date].concat());
            }
        },
        "ie_pps" => {
            let digits = chance.digits(7);
            let rest = (dot(&digits, &[8, 7, 6, 5, 4, 3, 2]) + 9) % 23;
            format!("{}{}A", text(&digits), char::from(b"WABCDEFGHIJKLMNOPQRSTUV"[rest as usize]))
        }
        _ => return None,
    })
}

fn northern(kind: &str, chance: &mut Chance) -> Option<String> {
    let (day, month, year) = birth(chance);
    Some(match kind {
        "pl_pesel" => {
            let mut all = [year, month, day, chance.digits(4)].concat();
            all.push((10 - dot(&all, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3]) % 10) % 10);
            text(&all)
        }
        "se_personnummer" => {
            let mut all = [year, month, day, chance.digits(3)].concat();
            all.push(luhn_digit(&all));
            text(&all)
        }
        "no_fodselsnummer" => loop {
            let mut all = [day.clone(), month.clone(), year.clone(), chance.digits(3)].concat();
            all.push((11 - dot(&all, &[3, 7, 6, 1, 8, 9, 4, 5, 2]) % 11) % 11);
            all.push((11 - dot(&all, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11);
            if all.iter().all(|digit| *digit < 10) {
                break text(&all);
            }
        },
        "dk_cpr" => text(&[day, month, year, chance.digits(4)].concat()),
        "fi_hetu" => {
            let (date, serial) = (text(&[day, month, year].concat()), chance.text("123456789", 3));
            let rest = format!("{date}{serial}").parse::<usize>().ok()? % 31;
            format!("{date}-{serial}{}", char::from(b"0123456789ABCDEFHJKLMNPRSTUVWXY"[rest]))
        }
        "cz_rodne_cislo" => loop {
            let body = text(&[year.clone(), month.clone(), day.clone(), chance.digits(3)].concat());
            let rest = body.parse::<u64>().ok()? % 11;
            if rest < 10 {
                break format!("{}/{}{rest}", &body[..6], &body[6..]);
            }
        },
        "ro_cnp" => {
            let mut all = [vec![1], year, month, day, vec![4, 0], chance.digits(3)].concat();
            let rest = dot(&all, &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11;
            all.push(if rest == 10 { 1 } else { rest });
            text(&all)
        }
        "tr_kimlik" => {
            let mut all = until(chance, 9, |_| true);
            let (odd, even) = (all[0] + all[2] + all[4] + all[6] + all[8], all[1] + all[3] + all[5] + all[7]);
            all.push((odd * 7 + 100 - even) % 10);
            all.push(all.iter().sum::<u32>() % 10);
            text(&all)
        }
        _ => return None,
    })
}

fn other(kind: &str, chance: &mut Chance) -> Option<String> {
    let (day, month, year) = birth(chance);
    let with_luhn = |mut all: Vec<u32>| {
        all.push(luhn_digit(&all));
        text(&all)
    };
    Some(match kind {
        "us_ssn" => {
            format!("{}{}{}", 100 + chance.below(500), 10 + chance.below(89), 1000 + chance.below(8999))
        }
        "il_id" => with_luhn(until(chance, 8, |_| true)),
        "ca_sin" => with_luhn([vec![4], chance.digits(7)].concat()),
        "za_id" => with_luhn([year, month, day, chance.digits(4), vec![0, 8]].concat()),
        "br_cpf" => {
            let mut all = until(chance, 9, |_| true);
            all.push(dot(&all, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) * 10 % 11 % 10);
            all.push(dot(&all, &[11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) * 10 % 11 % 10);
            text(&all)
        }
        "mx_curp" => curp(&text(&[year, month, day].concat()), chance),
        "cl_rut" => {
            let body = chance.text("123456789", 8);
            let digits: Vec<u32> = body.chars().rev().filter_map(|digit| digit.to_digit(10)).collect();
            let check = match 11 - dot(&digits, &[2, 3, 4, 5, 6, 7, 2, 3]) % 11 {
                11 => "0".to_owned(),
                10 => "K".to_owned(),
                value => value.to_string(),
            };
            format!("{}.{}.{}-{check}", &body[..2], &body[2..5], &body[5..])
        }
        _ => return None,
    })
}

fn eastern(kind: &str, chance: &mut Chance) -> Option<String> {
    let (day, month, year) = birth(chance);
    Some(match kind {
        "cn_resident_id" => {
            let all = [vec![1, 1, 0, 1, 0, 5, 1, 9], year, month, day, chance.digits(3)].concat();
            let rest = dot(&all, &[7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11;
            format!(
                "{}{}",
                text(&all),
                ["1", "0", "X", "9", "8", "7", "6", "5", "4", "3", "2"][rest as usize]
            )
        }
        "kr_rrn" => {
            let all = [year, month, day, vec![1], chance.digits(5)].concat();
            let check = (11 - dot(&all, &[2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]) % 11) % 10;
            format!("{}-{}{check}", text(&all[..6]), text(&all[6..]))
        }
        "jp_my_number" => {
            let mut all = until(chance, 11, |_| true);
            let sum = dot(&all, &[6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
            all.push(if sum < 2 { 0 } else { 11 - sum });
            text(&all)
        }
        "in_aadhaar" => aadhaar(chance),
        "in_pan" => format!(
            "{}P{}{}{}",
            chance.text("ABCDEFGH", 3),
            chance.text("KLMN", 1),
            chance.text("123456789", 4),
            chance.text("ABCDEF", 1)
        ),
        "sg_nric" => {
            let digits = chance.digits(7);
            let rest = dot(&digits, &[2, 7, 6, 5, 4, 3, 2]) % 11;
            format!("S{}{}", text(&digits), char::from(b"JZIHGFEDCBA"[rest as usize]))
        }
        "au_tfn" => text(&until(chance, 9, |all| dot(all, &[1, 4, 3, 7, 5, 8, 6, 9, 10]).is_multiple_of(11))),
        "au_medicare" => {
            let mut all = [vec![2], chance.digits(7)].concat();
            all.push(dot(&all, &[1, 3, 7, 9, 1, 3, 7, 9]) % 10);
            format!("{} {} 1", text(&all[..4]), text(&all[4..]))
        }
        _ => return None,
    })
}

fn spanish(digits: &str, first: &str) -> String {
    let letters = "TRWAGMYFPDXBNJZSQVHLCKE";
    let index = digits.parse::<usize>().unwrap() % 23;
    format!("{first}{digits}{}", &letters[index..=index])
}

/// Ten digits of which one stands twice, and a check digit.
fn tax_id(chance: &mut Chance) -> String {
    let mut pool: Vec<u32> = (0..10).collect();
    for index in (1..10).rev() {
        pool.swap(index, chance.below(index + 1));
    }
    if pool[0] == 0 {
        pool.swap(0, 5);
    }
    pool[9] = pool[2];
    let mut product = 10;
    for digit in &pool {
        let sum = (digit + product) % 10;
        product = 2 * if sum == 0 { 10 } else { sum } % 11;
    }
    let check = (11 - product) % 10;
    format!("{}{check}", text(&pool))
}

fn codice_fiscale(year: &[u32], chance: &mut Chance) -> String {
    let body = format!(
        "{}{}{}{}{}H501",
        chance.text("BCDFGLMNPRST", 6),
        text(year),
        chance.text("ABCDEHLMPRST", 1),
        chance.text("0123", 1).replace('3', "1"),
        chance.text("123456789", 1),
    );
    let odd = "BAKPLCQDREVOSFTGUHMINJWZYX";
    let sum: usize = body
        .chars()
        .enumerate()
        .map(|(index, character)| {
            let value = character.to_digit(10).unwrap_or_else(|| character.to_digit(36).unwrap() - 10);
            let letter = char::from(b'A' + u8::try_from(value).unwrap());
            if index % 2 == 0 { odd.find(letter).unwrap() } else { value as usize }
        })
        .sum();
    format!("{body}{}", char::from(b'A' + u8::try_from(sum % 26).unwrap()))
}

fn curp(date: &str, chance: &mut Chance) -> String {
    let body = format!(
        "{}{date}H{}{}0",
        chance.pick(&["GARM", "LOPJ", "HEMA"]),
        chance.pick(&["DF", "JC", "NL"]),
        chance.text("BCDFGL", 3)
    );
    let alphabet: Vec<char> = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ".chars().collect();
    let sum: usize = body
        .chars()
        .enumerate()
        .map(|(index, character)| {
            alphabet.iter().position(|known| *known == character).unwrap() * (18 - index)
        })
        .sum();
    format!("{body}{}", (10 - sum % 10) % 10)
}

/// With Verhoeff's tables as they are printed.
fn aadhaar(chance: &mut Chance) -> String {
    const D: [&str; 10] = [
        "0123456789",
        "1234067895",
        "2340178956",
        "3401289567",
        "4012395678",
        "5987604321",
        "6598710432",
        "7659821043",
        "8765932104",
        "9876543210",
    ];
    const P: [&str; 8] = [
        "0123456789",
        "1576283094",
        "5803796142",
        "8916043527",
        "9453126870",
        "4286573901",
        "2793806415",
        "7046913258",
    ];
    let at = |row: &str, index: u32| row.chars().nth(index as usize).unwrap().to_digit(10).unwrap();
    let body = until(chance, 11, |_| true);
    let check = (0..10).find(|check| {
        let all = [body.clone(), vec![*check]].concat();
        0 == all
            .iter()
            .rev()
            .enumerate()
            .fold(0, |sum, (index, digit)| at(D[sum as usize], at(P[index % 8], *digit)))
    });
    format!("{}{}", text(&body), check.unwrap())
}
