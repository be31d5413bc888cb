//! Replies as servers give them, with the class that their documentation says (`tests/replies.txt`).

use proptest::prelude::*;

use super::{BounceClass, classify, phrases, providers};

const REPLIES: &str = include_str!("tests/replies.txt");

/// A reply, and what it is.
#[derive(Clone, Copy)]
struct Sample {
    class: BounceClass,
    code: Option<u16>,
    status: Option<&'static str>,
    text: &'static str,
}

impl Sample {
    fn parse(line: &'static str) -> Self {
        let fields: Vec<&str> = line.split('\t').collect();
        let [class, code, status, text] = fields.as_slice() else { panic!("{line}") };
        let known = BounceClass::ALL.iter().find(|known| known.as_str() == *class);
        let value = |field: &'static str| (field != "-").then_some(field);
        Self {
            class: *known.unwrap_or_else(|| panic!("{line}")),
            code: value(code).map(|code| code.parse().unwrap()),
            status: value(status),
            text,
        }
    }

    fn classify(self) -> BounceClass {
        classify(self.code, self.status, &self.text.replace("\\n", "\n"))
    }

    /// Whether the table was written without it.
    fn is_held_out(self) -> bool {
        let hash = self.text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash >> 32).is_multiple_of(3)
    }
}

fn samples() -> Vec<Sample> {
    REPLIES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(Sample::parse).collect()
}

/// The samples that get another class, and the share of those that do not.
fn mistakes(samples: &[Sample]) -> (Vec<String>, f64) {
    let wrong: Vec<String> = samples
        .iter()
        .filter(|sample| sample.classify() != sample.class)
        .map(|sample| format!("{} is {}: {}", sample.class, sample.classify(), sample.text))
        .collect();
    let part = |count: usize| f64::from(u32::try_from(count).unwrap());
    let share = 1.0 - part(wrong.len()) / part(samples.len());
    (wrong, share)
}

#[test]
fn replies_get_the_class_that_their_servers_document() {
    let all = samples();
    let servers = REPLIES.lines().filter(|line| line.starts_with("# ")).count();
    assert!(all.len() >= 400 && servers >= 60, "only {} replies of {servers} servers", all.len());
    let (wrong, share) = mistakes(&all);
    assert!(share >= 0.97, "{share}:\n{}", wrong.join("\n"));
    let held_out: Vec<Sample> = all.into_iter().filter(|sample| sample.is_held_out()).collect();
    let (wrong, share) = mistakes(&held_out);
    assert!(share >= 0.95, "{share} of the replies held out:\n{}", wrong.join("\n"));
}

// What stops all mail to an address must not be guessed.
#[test]
fn nothing_but_a_dead_address_is_a_hard_bounce() {
    for sample in samples().into_iter().filter(|sample| sample.class != BounceClass::Hard) {
        assert_ne!(sample.classify(), BounceClass::Hard, "{}: {}", sample.class, sample.text);
    }
}

#[test]
fn no_words_about_unknown_users_outweigh_those_about_the_sender() {
    let others = phrases::GROUPS.iter().copied().flatten().filter(|rule| rule.class != BounceClass::Hard);
    let dead = providers::GROUPS.iter().copied().flatten().filter(|rule| rule.class == BounceClass::Hard);
    let dead: Vec<String> =
        dead.map(|rule| rule.phrase.replace('*', "x")).chain(["user unknown".to_owned()]).collect();
    for other in others {
        let other = other.phrase.replace('*', "x");
        for dead in &dead {
            for text in [format!("{dead} ({other} )"), format!(" {other} ; {dead}")] {
                let class = classify(Some(550), Some("5.1.1"), &text);
                assert_ne!(class, BounceClass::Hard, "{text}");
            }
        }
    }
}

#[test]
fn a_reply_that_asks_to_try_again_is_never_a_hard_bounce() {
    for sample in samples() {
        let text = sample.text.replace("\\n", "\n");
        for (code, status) in [(Some(450), None), (Some(421), sample.status), (Some(451), Some("4.1.1"))] {
            assert_ne!(classify(code, status, &text), BounceClass::Hard, "{text}");
        }
        assert_ne!(classify(None, Some("4.1.1"), &format!("smtp; 450 4.1.1 {text}")), BounceClass::Hard);
    }
    assert_eq!(classify(Some(450), None, ""), BounceClass::Soft);
    assert_eq!(classify(None, Some("4.4.7"), ""), BounceClass::Soft);
}

#[test]
fn a_report_says_the_same_as_the_reply_that_it_quotes() {
    for sample in samples() {
        let (Some(code), Some(status)) = (sample.code, sample.status) else { continue };
        let text = sample.text.replace("\\n", "\n");
        let quotes = [
            format!("smtp; {code} {status} {text}"),
            format!("smtp;{code}-{status} {text}"),
            format!("{code} {status} {text}"),
            format!("X-Postfix; host mx.spam.example[192.0.2.1] said: {code} {status} {text}"),
            format!("Given up; the last answer was: {code} {status} {text}"),
        ];
        for quote in quotes {
            assert_eq!(classify(None, Some("5.0.0"), &quote), sample.classify(), "{quote}");
            assert_eq!(classify(None, None, &quote), sample.classify(), "{quote}");
        }
    }
}

#[test]
fn lines_and_case_make_no_difference() {
    for sample in samples() {
        let text = sample.text.replace("\\n", "\n");
        let code = sample.code.unwrap_or(550);
        let expected = classify(Some(code), sample.status, &text);
        let status = sample.status.map_or_else(|| format!("{}.0.0", code / 100), str::to_owned);
        let lines = text.split_whitespace().collect::<Vec<_>>().join(&format!("\r\n{code}-{status} "));
        assert_eq!(classify(Some(code), sample.status, &lines), expected, "{lines}");
        assert_eq!(classify(Some(code), sample.status, &text.to_uppercase()), expected, "{text}");
    }
}

#[test]
fn statuses_and_codes_decide_where_the_text_says_nothing() {
    let cases = [
        (Some(550), Some("5.1.1"), BounceClass::Hard),
        (Some(550), Some("5.1.10"), BounceClass::Hard),
        (Some(550), Some("5.2.1"), BounceClass::Hard),
        (Some(552), Some("5.2.2"), BounceClass::Full),
        (Some(452), Some("4.2.2"), BounceClass::Full),
        (Some(552), Some("5.3.4"), BounceClass::Policy),
        (Some(550), Some("5.7.1"), BounceClass::Policy),
        (Some(550), Some("5.7.17"), BounceClass::Hard),
        (Some(550), Some("5.7.25"), BounceClass::Block),
        (Some(550), Some("5.7.606"), BounceClass::Block),
        (Some(421), Some("4.7.28"), BounceClass::Block),
        (Some(450), Some("4.7.1"), BounceClass::Soft),
        (None, Some("5.4.4"), BounceClass::Soft),
        (Some(550), None, BounceClass::Unknown),
        (Some(550), Some("5.0.0"), BounceClass::Unknown),
        (Some(552), None, BounceClass::Full),
        (Some(556), None, BounceClass::Hard),
        (Some(501), Some("nonsense"), BounceClass::Policy),
        (None, None, BounceClass::Unknown),
    ];
    for (code, status, expected) in cases {
        assert_eq!(classify(code, status, ""), expected, "{code:?} {status:?}");
    }
}

#[test]
fn addresses_say_nothing_and_long_texts_are_read_only_so_far() {
    let address = "<no-spam.policy+quota@blacklist.example>: User unknown";
    assert_eq!(classify(Some(550), Some("5.1.1"), address), BounceClass::Hard);
    let late = format!("{}user unknown", "é ".repeat(1000));
    assert_eq!(classify(Some(550), None, &late), BounceClass::Unknown);
    assert_eq!(classify(Some(550), None, &"said: 550-".repeat(5000)), BounceClass::Unknown);
    assert_eq!(classify(Some(u16::MAX), Some("5.999.9999"), "\u{0}@@<>"), BounceClass::Unknown);
}

#[test]
fn the_phrases_can_be_found() {
    let rules = || providers::GROUPS.iter().chain(phrases::GROUPS).copied().flatten();
    assert!(rules().count() > 300);
    for rule in rules() {
        let phrase = rule.phrase;
        assert!(phrase.split('*').all(|part| !part.trim().is_empty()), "{phrase}");
        assert_eq!(phrase.to_lowercase(), phrase);
        let twice = rules().filter(|other| other.phrase == phrase).count();
        assert_eq!(twice, 1, "{phrase}");
    }
}

proptest! {
    #[test]
    fn any_text_has_a_class(code in proptest::option::of(0_u16..1000), text in any::<String>()) {
        let _ = classify(code, Some(&text), &text);
    }

    #[test]
    fn words_in_any_order_have_a_class(words in proptest::collection::vec("[45][0-9]{2}[ -]|[45]\\.[0-9]\\.[0-9]|@|said:|<|é", 0..40)) {
        let _ = classify(None, None, &words.join(" "));
    }
}
