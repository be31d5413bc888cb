use proptest::prelude::*;

use super::{templates::expand, *};

const BOTH: Search = Search { secrets: true, personal: true };

fn names(text: &str) -> Vec<&'static str> {
    find(text, BOTH).into_iter().map(|finding| finding.name).collect()
}

#[test]
fn findings_stand_in_order_and_say_where() {
    let text = expand("pay with {{card:visa:spaces}}\nkey {{checked:ghp_}} thanks", "order");
    let found = find(&text, BOTH);
    assert_eq!(
        found.iter().map(|finding| finding.name).collect::<Vec<_>>(),
        ["payment_card", "github_token"]
    );
    let token = &text[found[1].range.clone()];
    assert!(token.starts_with("ghp_") && token.len() == 40);
    assert!(found[1].masked.starts_with("ghp_…") && found[1].masked.chars().count() == 7);
    let only = find(&text, Search { secrets: true, personal: false });
    assert_eq!(only, found[1..]);
    assert!(find(&text, Search::default()).is_empty());
}

#[test]
fn hidden_values_are_found_where_they_stand() {
    let token = expand("{{checked:ghp_}}", "hidden");
    let hidden = format!("é {}\u{200b}{} é", &token[..20], &token[20..]);
    let found = find(&hidden, BOTH);
    assert_eq!(found.len(), 1);
    assert_eq!(hidden[found[0].range.clone()].replace('\u{200b}', ""), token);
    let wide: String = expand("Karte {{card:visa}}", "wide")
        .chars()
        .map(|digit| digit.to_digit(10).map_or(digit, |digit| char::from_u32(0xff10 + digit).unwrap()))
        .collect();
    assert_eq!(names(&wide), ["payment_card"]);
}

#[test]
fn a_private_key_is_one_finding_to_its_end() {
    let text =
        expand("-----BEGIN RSA PRIVATE KEY-----\n{{pem:25}}\n-----END RSA PRIVATE KEY-----\nbye", "key");
    let found = find(&text, BOTH);
    assert_eq!(found.len(), 1);
    assert!(text[found[0].range.clone()].ends_with("-----END RSA PRIVATE KEY-----"));
    assert_eq!(found[0].masked, "RSA PRIVATE KEY …");
}

#[test]
fn findings_are_bounded() {
    let text: String =
        (0..500).map(|seed| expand("{{checked:ghp_}} {{card:visa:spaces}}\n", &seed.to_string())).collect();
    assert_eq!(find(&text, BOTH).len(), MAX_FINDINGS);
}

/// Whatever the text, the search ends and its ranges hold. How long it takes is measured, not tested.
#[test]
fn hostile_texts_are_taken() {
    for part in [
        "a",
        "AKIA",
        "-----BEGIN ",
        "-----BEGIN RSA PRIVATE KEY-----\nAAAA",
        "http://",
        "://a:",
        "1",
        "4111 ",
        "@",
        "a@b.cd,",
        "eyJ",
        "password:",
        "password is ",
        "sk-",
        ".",
        "M.",
        "xoxb-",
        "DE89",
        "=\n",
        "\u{200b}",
        "４",
        "token=",
        "key\n:",
        "\u{fc}",
    ] {
        let text = part.repeat(40_000 / part.len());
        for finding in find(&text, BOTH) {
            assert!(text.get(finding.range).is_some(), "{part}");
        }
    }
}

/// The prefixes that every token of a kind has may be shown; of the value itself two characters, of a card four.
fn shows_little(finding: &Finding, value: &str) -> bool {
    let shown = finding.masked.split('…').collect::<Vec<_>>();
    let [prefix, ending] = shown[..] else { return finding.name == "address_list" };
    if finding.name.ends_with("private_key") {
        // The type of the key, and nothing behind it.
        let is_title = prefix.ends_with("PRIVATE KEY ")
            || prefix.ends_with("KEY BLOCK ")
            || prefix.starts_with("PuTTY-");
        return is_title && prefix.len() < 32 && ending.is_empty();
    }
    let longest = if finding.name == "payment_card" { 4 } else { 2 };
    ending.chars().count() <= longest && prefix.len() <= 4 && value.starts_with(prefix)
}

#[test]
fn masks_of_all_examples_show_little() {
    let mut count = 0;
    let rows = secrets::examples().chain(personal::examples());
    for example in rows {
        let text = expand(example, "mask");
        for finding in find(&text, BOTH) {
            assert!(shows_little(&finding, &text[finding.range.clone()]), "{finding:?}");
            count += 1;
        }
    }
    assert!(count > 150, "{count}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_text_is_searched(text in "\\PC{0,300}") {
        check_ranges(&text);
    }

    #[test]
    fn any_mixture_of_parts_is_searched(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "password", ": ", "=", "AKIA", "ABCDEFGHIJKLMNOP", "-----BEGIN ", "PRIVATE KEY-----", "\n", "://", "u:p4ss", "@h", "é",
                "\u{200b}", "4111 1111 1111 1111", "DE89370400440532013000", "eyJhbGciOiJub25lIn0", ".", "Bearer ", "１２", "a@b.cd ",
            ]),
            0..40,
        ),
    ) {
        check_ranges(&parts.concat());
    }
}

fn check_ranges(text: &str) {
    let found = find(text, BOTH);
    for kind in [Kind::Secret, Kind::Personal] {
        let of_kind: Vec<&Finding> = found.iter().filter(|finding| finding.kind == kind).collect();
        assert!(of_kind.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
    }
    for finding in &found {
        assert!(text.get(finding.range.clone()).is_some_and(|value| !value.is_empty()));
    }
}
