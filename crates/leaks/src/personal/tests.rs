use super::{TABLE, find, number::Number};
use crate::templates::expand;

fn rows() -> Vec<&'static Number> {
    TABLE.as_ref().expect("a pattern is wrong").rows.clone()
}

fn names(text: &str) -> Vec<&'static str> {
    find(text, 10).into_iter().map(|item| item.name).collect()
}

#[test]
fn every_row_finds_its_examples_and_nothing_else() {
    let mut wrong = Vec::new();
    for row in rows() {
        for (index, example) in row.matches.iter().enumerate() {
            for seed in 0..20 {
                let text = expand(example, &format!("{}/{index}/{seed}", row.name));
                if names(&text) != [row.name] {
                    wrong.push(format!("{}: {:?} in {text:?}", row.name, names(&text)));
                }
            }
        }
        for (index, example) in row.misses.iter().enumerate() {
            let text = expand(example, &format!("{}/{index}", row.name));
            if names(&text).contains(&row.name) {
                wrong.push(format!("{} must not be found in {text:?}", row.name));
            }
        }
    }
    wrong.dedup_by_key(|line| line.split(':').next().unwrap_or_default().to_owned());
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}

/// Numbers that issuers and encyclopedias print as examples.
#[test]
fn published_examples_are_found() {
    for (name, text) in [
        ("payment_card", "4111 1111 1111 1111"),
        ("payment_card", "card 378282246310005"),
        ("iban", "GB82 WEST 1234 5698 7654 32"),
        ("iban", "NL91ABNA0417164300"),
        ("passport_mrz", "L898902C36UTO7408122F1204159ZE184226B<<<<<10"),
        ("uk_nhs", "NHS no. 943 476 5919"),
        ("de_tax_id", "Steuer-IdNr. 86 095 742 719"),
        ("de_social_insurance", "Versicherungsnummer 15 070649 C 103"),
        ("fr_nir", "2 69 05 49 588 157 80"),
        ("es_dni", "DNI 12345678Z"),
        ("es_nie", "NIE X1234567L"),
        ("it_codice_fiscale", "RSSMRA85T10A562S"),
        ("nl_bsn", "BSN 111222333"),
        ("be_national_number", "85.07.30-033.28"),
        ("ch_ahv", "756.9217.0769.85"),
        ("at_social_insurance", "SVNR 1237 010180"),
        ("ie_pps", "PPS 1234567FA"),
        ("tr_kimlik", "TCKN 10000000146"),
        ("pl_pesel", "PESEL 44051401359"),
        ("se_personnummer", "personnummer 811218-9876"),
        ("fi_hetu", "131052-308T"),
        ("br_cpf", "529.982.247-25"),
        ("mx_curp", "BOXW310820HNERXN09"),
        ("cl_rut", "RUT 12.345.678-5"),
        ("ca_sin", "SIN 046 454 286"),
        ("cn_resident_id", "11010519491231002X"),
        ("za_id", "ID number 8001015009087"),
        ("au_tfn", "TFN 123 456 782"),
        ("sg_nric", "NRIC S1234567D"),
        ("us_ssn", "SSN 536-90-4399"),
    ] {
        assert_eq!(names(text), [name], "{text}");
    }
}

#[test]
fn many_addresses_are_a_list() {
    let list = |count: usize| {
        (0..count).map(|index| format!("person{index}@example.com")).collect::<Vec<_>>().join(", ")
    };
    assert!(names(&list(19)).is_empty());
    let found = find(&list(25), 10);
    assert_eq!((found[0].name, found[0].masked.as_str()), ("address_list", "25 addresses"));
    assert!(names(&"same@example.com ".repeat(100)).is_empty());
}
