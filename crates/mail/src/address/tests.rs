//! Tests of addresses, mailboxes and hosted local parts.

use std::collections::HashSet;
use std::fmt;

use proptest::prelude::*;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::{Deserialize, Serialize};

use super::hosted::RESERVED;
use super::*;

fn address(text: &str) -> Address {
    Address::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn refusal(text: &str) -> AddressError {
    Address::parse(text).expect_err(text)
}

fn mailbox(text: &str) -> Mailbox {
    Mailbox::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// Shows a value through its `Serialize`, so that the test needs no JSON library.
struct Serialised<T>(T);

impl<T: Serialize> fmt::Display for Serialised<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.serialize(f)
    }
}

fn deserialised<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ValueError> {
    let deserializer: StrDeserializer<'a, ValueError> = text.into_deserializer();
    T::deserialize(deserializer)
}

#[test]
fn an_address_is_normalised_but_its_local_part_kept_as_typed() {
    let typed = address("John.Smith+News@EXAMPLE.Com.");
    assert_eq!(typed.local(), "John.Smith+News");
    assert_eq!(typed.domain(), "example.com");
    assert_eq!(typed.as_str(), "john.smith+news@example.com");
    assert_eq!(typed.to_string(), "John.Smith+News@example.com");
    assert_eq!(typed, address("john.smith+news@example.com"));
}

#[test]
fn equality_order_and_hash_use_the_normalised_form() {
    let set: HashSet<Address> =
        ["A@x.org", "a@X.org", "b@x.org", "a@bücher.example", "a@xn--bcher-kva.example"].map(address).into();
    assert_eq!(set.len(), 3);
    assert!(address("B@x.org") > address("a@x.org"));
}

#[test]
fn the_characters_of_a_dot_atom_are_allowed() {
    for local in ["a", "0", "-a-", "_", "o'brien", "a.b.c", "#$&'*+-/=?^_`{|}~", "jörg", "用户", "почта.дом"]
    {
        assert_eq!(address(&format!("{local}@example.com")).local(), local);
    }
}

#[test]
fn domains_become_a_labels() {
    for (typed, domain) in [
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("faß.example", "xn--fa-hia.example"),
        ("例え。テスト", "xn--r8jz45g.xn--zckzah"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("ｅxample.com", "example.com"),
        ("localhost", "localhost"),
        ("r3---sn-4g5.example", "r3---sn-4g5.example"),
        ("1and1.com", "1and1.com"),
        ("a.example。", "a.example"),
    ] {
        assert_eq!(address(&format!("a@{typed}")).domain(), domain, "{typed}");
    }
}

#[test]
fn what_is_no_domain_is_refused() {
    let long_label = format!("{}.com", "a".repeat(64));
    let overlong = vec!["abcdefgh"; 30].join(".");
    let faults = [
        "",
        ".",
        "..",
        "example..com",
        "example.com..",
        ".example.com",
        "-a.com",
        "a-.com",
        "a_b.com",
        "a b.com",
        " example.com",
        "example.com ",
        "exa\u{0}mple.com",
        "example.com\r\nRCPT TO:<x",
        "a%b.com",
        "a/b.com",
        "a:25",
        "xn--a.com",
        "a,b.com",
        "a＠b.com",
        &long_label,
        &overlong,
    ];
    for domain in faults {
        assert_eq!(refusal(&format!("a@{domain}")), AddressError::Domain, "{domain:?}");
    }
    for literal in ["[1.2.3.4]", "[IPv6:::1]", "127.0.0.1", "１２７.1", "a.1."] {
        assert_eq!(refusal(&format!("a@{literal}")), AddressError::Literal, "{literal:?}");
    }
}

#[test]
fn what_is_no_local_part_is_refused() {
    assert_eq!(refusal(""), AddressError::Empty);
    assert_eq!(refusal("example.com"), AddressError::At);
    assert_eq!(refusal("a@b@example.com"), AddressError::At);
    assert_eq!(refusal("@relay.example:a@example.com"), AddressError::At);
    assert_eq!(refusal("@example.com"), AddressError::LocalEmpty);
    assert_eq!(refusal("\"a b\"@example.com"), AddressError::Quoted);
    for dots in [".a", "a.", "a..b", "."] {
        assert_eq!(refusal(&format!("{dots}@example.com")), AddressError::LocalDots);
    }
    let refused =
        "%! ,:;<>()[]\\\"\r\n\0\t\u{7f}\u{85}\u{a0}\u{200b}\u{200d}\u{202e}\u{2028}\u{3000}\u{feff}\u{ad}";
    for c in refused.chars() {
        assert_eq!(refusal(&format!("a{c}b@example.com")), AddressError::LocalCharacter(c));
    }
}

#[test]
fn lengths_are_counted_in_bytes_of_both_forms() {
    let local = "a".repeat(64);
    let domain = format!("{}.{}.{}", "b".repeat(63), "c".repeat(63), "d".repeat(61));
    let longest = address(&format!("{local}@{domain}"));
    assert_eq!(longest.as_str().len(), 254);
    assert_eq!(refusal(&format!("{local}@{domain}d")), AddressError::TooLong);
    assert_eq!(refusal(&format!("{local}a@x.org")), AddressError::LocalTooLong);
    assert_eq!(refusal(&format!("{}@x.org", "ü".repeat(33))), AddressError::LocalTooLong);
    // "Ⱥ" takes two bytes, its lower-case form three.
    assert_eq!(refusal(&format!("{}@x.org", "Ⱥ".repeat(22))), AddressError::LocalTooLong);
    assert_eq!(refusal(&format!("a@{}", "ü".repeat(100_000))), AddressError::TooLong);
}

#[test]
fn a_look_alike_never_equals_an_ascii_address() {
    assert_ne!(address("bo\u{212a}@x.org"), address("bok@x.org"));
    assert_ne!(address("\u{130}da@x.org"), address("ida@x.org"));
    assert_eq!(address("ÄRGER@x.org"), address("ärger@x.org"));
}

#[test]
fn plus_tags_come_off() {
    for (text, bare, tag) in [
        ("Name+Tag@x.org", "Name@x.org", Some("Tag")),
        ("name+a+b@x.org", "name@x.org", Some("a+b")),
        ("name+@x.org", "name@x.org", Some("")),
        ("name@x.org", "name@x.org", None),
        ("+tag@x.org", "+tag@x.org", None),
        ("name.+tag@x.org", "name.+tag@x.org", None),
    ] {
        let parsed = address(text);
        assert_eq!(parsed.tag(), tag, "{text}");
        assert_eq!(parsed.without_tag().to_string(), bare, "{text}");
        assert_eq!(parsed.without_tag(), address(bare), "{text}");
    }
}

#[test]
fn addresses_and_mailboxes_are_strings_on_the_wire() {
    assert_eq!(Serialised(address("Ab@X.org")).to_string(), "Ab@x.org");
    assert_eq!(deserialised::<Address>("Ab@X.org").unwrap().local(), "Ab");
    let refused = deserialised::<Address>("no address").unwrap_err();
    assert_eq!(refused.to_string(), AddressError::At.to_string());
    assert_eq!(Serialised(mailbox("\"B, A\" <ab@x.org>")).to_string(), "\"B, A\" <ab@x.org>");
    assert_eq!(deserialised::<Mailbox>("A <ab@x.org>").unwrap().name(), Some("A"));
    let schema = schemars::schema_for!(Address);
    assert_eq!(schema.get("type").and_then(|value| value.as_str()), Some("string"));
    assert_eq!(schema.get("format").and_then(|value| value.as_str()), Some("email"));
    let mailbox_schema = schemars::schema_for!(Mailbox);
    assert_eq!(mailbox_schema.get("type").and_then(|value| value.as_str()), Some("string"));
}

#[test]
fn messages_are_one_sentence() {
    let messages = [
        refusal("a b@x.org").to_string(),
        refusal("a@[::1]").to_string(),
        Mailbox::parse("A <a@x.org").unwrap_err().to_string(),
        hosted_local_part("a").unwrap_err().to_string(),
        hosted_local_part("admin").unwrap_err().to_string(),
    ];
    assert_eq!(messages[0], "The part before the @ must not contain ' '.");
    assert_eq!(messages[4], "The mailbox name \"admin\" is reserved.");
    assert!(messages.iter().all(|message| message.ends_with('.') && !message.contains(". ")));
}

#[test]
fn mailboxes_are_read_in_every_form() {
    for (text, name) in [
        ("a@x.org", None),
        (" a@x.org ", None),
        ("<a@x.org>", None),
        ("\"\" <a@x.org>", None),
        ("Ann  B. Lee <a@x.org>", Some("Ann B. Lee")),
        ("Ann<a@x.org>", Some("Ann")),
        ("Jörg 用户 <a@x.org>", Some("Jörg 用户")),
        ("\"Lee, Ann\" <a@x.org>", Some("Lee, Ann")),
        (r#""Ann \"A\\B\" <boss@y.org>" <a@x.org>"#, Some(r#"Ann "A\B" <boss@y.org>"#)),
        ("O'Brien & Co <a@x.org>", Some("O'Brien & Co")),
    ] {
        let parsed = mailbox(text);
        assert_eq!(parsed.name(), name, "{text}");
        assert_eq!(parsed.address(), &address("a@x.org"), "{text}");
    }
}

#[test]
fn what_is_no_single_mailbox_is_refused() {
    use AddressError::{At, Brackets, Empty, LocalCharacter, NameControl, NameTooLong, NameUnquoted};
    let long_name = format!("{} <a@x.org>", "n".repeat(MAX_NAME_CHARS + 1));
    for (text, error) in [
        ("", Empty),
        ("<>", Empty),
        ("Ann", At),
        ("Ann <a@x.org", Brackets),
        ("a@x.org>", Brackets),
        ("\"Ann <a@x.org>", Brackets),
        ("\"Ann\" Lee <a@x.org>", Brackets),
        (r#""Ann\" <a@x.org>"#, Brackets),
        ("a@x.org, b@x.org", At),
        ("Lee, Ann <a@x.org>", NameUnquoted(',')),
        ("Ann (work) <a@x.org>", NameUnquoted('(')),
        ("a@x.org <a@x.org>", NameUnquoted('@')),
        ("A <b@x.org> <a@x.org>", NameUnquoted('<')),
        ("Ann\r\nBcc: b@x.org <a@x.org>", NameUnquoted(':')),
        ("Ann\r\n <a@x.org>", NameControl('\r')),
        ("\"Ann\n\" <a@x.org>", NameControl('\n')),
        ("\"Ann\\\n\" <a@x.org>", NameControl('\n')),
        ("\"Ann\0\" <a@x.org>", NameControl('\0')),
        ("Ann <a@x.org>\r\n", Brackets),
        ("Ann < a@x.org>", LocalCharacter(' ')),
        (&long_name, NameTooLong),
    ] {
        assert_eq!(Mailbox::parse(text), Err(error), "{text:?}");
    }
    assert!(Mailbox::new(Some(&"ü".repeat(MAX_NAME_CHARS)), address("a@x.org")).is_ok());
    assert_eq!(Mailbox::new(Some(" "), address("a@x.org")), Ok(address("a@x.org").into()));
}

/// rules: MBX-6
#[test]
fn the_reserved_words_are_sorted_and_squeezed() {
    assert!(RESERVED.is_sorted_by(|a, b| a < b));
    assert!(RESERVED.iter().all(|word| word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())));
    assert!(RESERVED.iter().all(|word| word.len() <= 30));
}

/// rules: MBX-5, MBX-6
#[test]
fn hosted_local_parts_follow_the_contract() {
    use HostedLocalPartError::{Character, Length, Separator};
    let longest = "a".repeat(30);
    for good in ["alice", "Alice.B", "a-b_c.d", "12345", "supporter", "admin2", "my-admin", &longest] {
        assert_eq!(hosted_local_part(good), Ok(()), "{good}");
    }
    for (bad, error) in [
        ("", Length),
        ("alic", Length),
        (&"a".repeat(31), Length),
        (".alice", Separator),
        ("alice-", Separator),
        ("al..ice", Separator),
        ("al.-ice", Separator),
        (".....", Separator),
        ("al ice", Character(' ')),
        ("alice+tag", Character('+')),
        ("älice", Character('ä')),
        ("alice@x.org", Character('@')),
    ] {
        assert_eq!(hosted_local_part(bad), Err(error), "{bad}");
    }
    for word in [
        "admin",
        "Postmaster",
        "ABUSE",
        "support",
        "security",
        "no-reply",
        "noreply",
        "mailer-daemon",
        "ad.min",
        "r-o-o-t",
        "in_fo",
        "do-not-reply",
    ] {
        assert_eq!(hosted_local_part(word), Err(HostedLocalPartError::Reserved(word.to_owned())));
    }
}

fn local_part() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9#$&'*+/=?^_`{|}~äÖßΣжİ\u{212a}Ⱥ用-]{1,12}(\\.[a-zA-Z0-9+ñ_-]{1,6}){0,2}"
}

fn domain_name() -> impl Strategy<Value = String> {
    "([a-zA-Z0-9äöüéñж用][a-zA-Z0-9]{0,8}\\.){0,3}[a-zA-Z]{2,6}\\.?"
}

proptest! {
    #[test]
    fn parsing_never_panics_and_keeps_the_promises(text in any::<String>()) {
        if let Ok(parsed) = Address::parse(&text) {
            prop_assert!(parsed.as_str().len() <= MAX_ADDRESS_BYTES);
            prop_assert!(!parsed.to_string().contains(is_invisible));
        }
        let _ = Mailbox::parse(&text);
        let _ = hosted_local_part(&text);
    }

    #[test]
    fn what_is_printed_reads_back(local in local_part(), domain in domain_name()) {
        let Ok(parsed) = Address::parse(&format!("{local}@{domain}")) else { return Ok(()); };
        let shown = address(&parsed.to_string());
        prop_assert_eq!(&shown, &parsed);
        prop_assert_eq!(shown.local(), parsed.local());
        let normalised = address(parsed.as_str());
        prop_assert_eq!(normalised.as_str(), parsed.as_str());
        prop_assert_eq!(parsed.as_str().is_ascii(), local.is_ascii());
        let is_host_byte = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b);
        prop_assert!(parsed.domain().bytes().all(is_host_byte));
    }

    #[test]
    fn a_stripped_address_is_an_address_and_stays_stripped(local in local_part()) {
        let Ok(parsed) = Address::parse(&format!("{local}@x.org")) else { return Ok(()); };
        let bare = parsed.without_tag();
        let reread = address(&bare.to_string());
        prop_assert_eq!(bare.as_str(), reread.as_str());
        prop_assert_eq!(bare.without_tag(), bare);
    }

    #[test]
    fn a_mailbox_reads_back(name in "[ -~äß用]{0,40}") {
        let made = Mailbox::new(Some(&name), address("Ab@x.org")).unwrap();
        let read = mailbox(&made.to_string());
        prop_assert_eq!(&read, &made);
        prop_assert_eq!(read.address().local(), "Ab");
    }

    #[test]
    fn every_hosted_local_part_is_an_address(local in "[a-zA-Z0-9._-]{4,32}") {
        if hosted_local_part(&local).is_ok() {
            let parsed = Address::parse(&format!("{local}@x.org"));
            prop_assert!(parsed.is_ok());
        }
    }
}
