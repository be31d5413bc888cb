//! Published examples and those made with the protocols' own libraries, and proofs that are almost right.

use crate::{
    Address, Authorization, Payment, Refusal, Signature, Terms, TokenDomain, Word, encoding, mpp, networks,
    personal_digest, siwx, verify, wallet::Wallet, within_time, x402,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const PAY_TO: &str = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";
const NOW: u64 = 1_893_455_800;

fn key(text: &str) -> [u8; 32] {
    Word::parse_hex(text).unwrap().0
}

fn wallet() -> Wallet {
    Wallet::new(key("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")).unwrap()
}

fn terms(amount: u64) -> Terms {
    let network = networks::find("eip155:84532").unwrap();
    Terms {
        network: network.id.to_owned(),
        v1_network: network.v1_name.to_owned(),
        domain: network.domain(),
        pay_to: Address::parse(PAY_TO).unwrap(),
        amount,
        max_timeout: 300,
    }
}

fn authorization(value: u64) -> Authorization {
    Authorization {
        from: wallet().address,
        to: Address::parse(PAY_TO).unwrap(),
        value: value.into(),
        valid_after: 0.into(),
        valid_before: 1_893_456_000.into(),
        nonce: Word::parse_hex("0xf3746613c2d920b5fdabc0856f2aeb2d4f88ee6037b8cc5d04a71a4462f13480").unwrap(),
    }
}

fn paid(terms: &Terms, authorization: Authorization) -> Payment {
    Payment { signature: wallet().authorize(&authorization, &terms.domain), authorization }
}

fn resource() -> x402::Resource {
    x402::Resource {
        url: "https://api.example.com/api/agent/v1/mailboxes".to_owned(),
        description: "Makes a mailbox.".to_owned(),
        service: "Agent Mailbox".to_owned(),
    }
}

fn header(terms: &Terms, payment: &Payment) -> String {
    encoding::to_standard(&x402::payload(terms, &resource(), payment))
}

/// Made with viem, the library of most wallets.
#[test]
fn authorisations_are_hashed_and_signed_as_wallets_do() {
    let domain = terms(0).domain;
    assert_eq!(wallet().address.to_checksum(), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    assert_eq!(
        Word(domain.separator()).to_hex(),
        "0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818"
    );
    for (value, digest, signature) in [
        (
            10_000,
            "0xa2907ad09b1edfb8ed9dd7154a119efd2e824e676f03bc11261cd46cb4b83260",
            "0xf8ddbb5111d4b6eb84728ba07da18b2b5307fd6d682c5e913861fd2564839bfb0b5f2241ccafdc54036063456e970ec9abf4bdac429b00af9583fb187ed7be8d1b",
        ),
        (
            0,
            "0x86d0bb17022c109a08e167a948a95a593fbcb79246b95f5903fcfcd5c54efcba",
            "0xd4546e611d16a229d902a7956b4b70aaad1698b5daffc9ea372e5154858aeef41c6c92fd848b2789e3859d5b524cfb30965fd082fb231b4fa763bf5001036cbd1c",
        ),
    ] {
        let authorization = authorization(value);
        let found = authorization.digest(&domain);
        assert_eq!(Word(found).to_hex(), digest);
        let signature = Signature::parse(signature).unwrap();
        assert_eq!(signature.recover(found), Some(wallet().address));
        assert!(signature == wallet().authorize(&authorization, &domain));
        assert_eq!(verify(&terms(value), &Payment { authorization, signature }), Ok(()));
    }
}

/// The example of the protocol's specification: another token, another chain, a real payer.
#[test]
fn another_token_is_another_signature() {
    let authorization = authorization(10_000);
    let right = terms(10_000);
    let payment = paid(&right, authorization);
    let others = [
        TokenDomain { name: "USD Coin".to_owned(), ..right.domain.clone() },
        TokenDomain { version: "1".to_owned(), ..right.domain.clone() },
        TokenDomain { chain_id: 8453, ..right.domain.clone() },
        TokenDomain { contract: Address([7; 20]), ..right.domain.clone() },
    ];
    for domain in others {
        assert_eq!(verify(&Terms { domain, ..right.clone() }, &payment), Err(Refusal::SIGNATURE));
    }
}

#[test]
fn what_is_not_what_was_asked_for_is_refused() {
    let right = terms(10_000);
    let payment = paid(&right, authorization(10_000));
    assert_eq!(verify(&terms(10_001), &payment), Err(Refusal::VALUE));
    assert_eq!(verify(&terms(9_999), &payment), Err(Refusal::VALUE));
    let elsewhere = Terms { pay_to: Address([1; 20]), ..right.clone() };
    assert_eq!(verify(&elsewhere, &payment), Err(Refusal::RECIPIENT));
    let stolen = Authorization { from: Address([2; 20]), ..payment.authorization };
    let stolen = Payment { authorization: stolen, ..payment };
    assert_eq!(verify(&right, &stolen), Err(Refusal::SIGNATURE));
    for (change, refusal) in [
        (json!({ "x402Version": 1 }), Refusal::VERSION),
        (json!({ "accepted": { "scheme": "upto" } }), Refusal::SCHEME),
        (json!({ "accepted": { "network": "eip155:8453" } }), Refusal::NETWORK),
        (json!({ "accepted": { "amount": "1" } }), Refusal::VALUE),
        (
            json!({ "accepted": { "payTo": "0x0000000000000000000000000000000000000001" } }),
            Refusal::RECIPIENT,
        ),
        (
            json!({ "accepted": { "asset": "0x0000000000000000000000000000000000000001" } }),
            Refusal::REQUIREMENTS,
        ),
        (json!({ "payload": { "signature": "0x" } }), Refusal::SIGNATURE_FORM),
        (json!({ "payload": { "authorization": { "value": "-1" } } }), Refusal::MALFORMED),
        (json!({ "payload": { "authorization": { "nonce": "0x01" } } }), Refusal::MALFORMED),
    ] {
        let mut payload = x402::payload(&right, &resource(), &payment);
        merge(&mut payload, &change);
        let read = x402::read_v2(&encoding::to_standard(&payload), &right);
        assert_eq!(read.err(), Some(refusal), "{change}");
    }
    assert!(x402::read_v2(&header(&right, &payment), &right).is_ok());
    assert!(x402::read_v1(&encoding::to_standard(&x402::v1_payload(&right, &payment)), &right).is_ok());
    assert_eq!(x402::read_v2(&"A".repeat(9000), &right).err(), Some(Refusal::MALFORMED));
}

fn merge(value: &mut Value, change: &Value) {
    match (value, change) {
        (Value::Object(value), Value::Object(change)) => {
            for (name, change) in change {
                merge(value.entry(name.clone()).or_insert(Value::Null), change);
            }
        }
        (value, change) => *value = change.clone(),
    }
}

#[test]
fn times_are_bounded_on_both_sides() {
    let terms = terms(0);
    let at = |valid_after: u64, valid_before: u64| Authorization {
        valid_after: valid_after.into(),
        valid_before: valid_before.into(),
        ..authorization(0)
    };
    assert_eq!(within_time(&terms, &at(0, NOW + 300), NOW), Ok(()));
    assert_eq!(within_time(&terms, &at(NOW, NOW + 6), NOW), Ok(()));
    assert_eq!(within_time(&terms, &at(0, NOW + 5), NOW), Err(Refusal::EXPIRED));
    assert_eq!(within_time(&terms, &at(0, NOW + 361), NOW), Err(Refusal::EXPIRED));
    assert_eq!(within_time(&terms, &at(NOW + 1, NOW + 300), NOW), Err(Refusal::NOT_YET));
    let forever = Authorization { valid_before: Word([0xff; 32]), ..authorization(0) };
    assert_eq!(within_time(&terms, &forever, NOW), Err(Refusal::EXPIRED));
}

/// The mirror of a signature can be computed by anyone. It must not count as another one.
#[test]
fn the_mirror_of_a_signature_is_refused() {
    // The order of the curve, most significant byte first.
    let order = key("0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
    let authorization = authorization(10_000);
    let text = wallet().authorize(&authorization, &terms(0).domain).to_hex();
    let s = key(&format!("0x{}", &text[66..130]));
    let mut mirrored = [0_u8; 32];
    let mut borrow = 0_i16;
    for index in (0..32).rev() {
        let mut digit = i16::from(order[index]) - i16::from(s[index]) - borrow;
        borrow = i16::from(digit < 0);
        digit += 256 * borrow;
        mirrored[index] = u8::try_from(digit).unwrap();
    }
    let parity = if text.ends_with("1b") { "1c" } else { "1b" };
    let mirror = format!("{}{}{parity}", &text[..66], &Word(mirrored).to_hex()[2..]);
    assert!(Signature::parse(&text).is_some());
    assert!(Signature::parse(&mirror).is_none());
    for odd in [&text[..130], &format!("{text}00"), &format!("{}1d", &text[..130]), "0x", ""] {
        assert!(Signature::parse(odd).is_none(), "{odd}");
    }
}

/// Made with the library of the sign-in extension.
#[test]
fn sign_ins_are_the_text_that_wallets_show() {
    let uri = "https://api.example.com/api/agent/v1/inboxes";
    let sign_in = siwx::SignIn {
        domain: "api.example.com".to_owned(),
        address: wallet().address.to_checksum(),
        statement: Some("Sign in to access your inbox".to_owned()),
        uri: uri.to_owned(),
        version: "1".to_owned(),
        chain_id: "eip155:84532".to_owned(),
        kind: "eip191".to_owned(),
        nonce: "a1b2c3d4e5f67890a1b2c3d4e5f67890".to_owned(),
        issued_at: "2026-01-15T10:30:00.000Z".to_owned(),
        expiration_time: Some("2026-01-15T10:35:00.000Z".to_owned()),
        not_before: None,
        request_id: None,
        resources: Some(vec![uri.to_owned()]),
        signature: String::new(),
    };
    let text = siwx::message(&sign_in, wallet().address);
    assert_eq!(
        Word(personal_digest(&text)).to_hex(),
        "0xd0cce7f4bc80b3a0f26f374e943eac1478065741083339c649ef812d04e5a82d",
        "{text}"
    );
    assert_eq!(
        wallet().sign_text(&text).to_hex(),
        "0x2a54bd96270671c0c49aa31c62fffa31a0356992588441ba99f26429c4e721b1225c1f5771bab6c5486d3f834e2b495250e3482d1fa604c2d2214b8a1d9f56251b"
    );
}

fn audience() -> siwx::Audience {
    siwx::Audience {
        domain: "api.example.com".to_owned(),
        uri: "https://api.example.com/api/agent/v1/mailboxes".to_owned(),
        network: "eip155:84532".to_owned(),
        statement: "Show your wallet".to_owned(),
    }
}

/// What a client makes of the extension.
fn sign_in(change: impl FnOnce(&mut siwx::SignIn)) -> String {
    let nonce = siwx::new_nonce(b"secret", NOW, [5; 8]);
    let mut value = siwx::extension(&audience(), &nonce, NOW)["info"].clone();
    value["address"] = wallet().address.to_checksum().into();
    value["chainId"] = "eip155:84532".into();
    value["type"] = "eip191".into();
    value["signature"] = "".into();
    let mut sign_in: siwx::SignIn = serde_json::from_value(value).unwrap();
    change(&mut sign_in);
    if sign_in.signature.is_empty() {
        sign_in.signature = wallet().sign_text(&siwx::message(&sign_in, wallet().address)).to_hex();
    }
    siwx::header(&sign_in)
}

type Change = fn(&mut siwx::SignIn);

#[test]
fn sign_ins_count_here_only() {
    let check = |header: &str, now| siwx::verify(header, &audience(), b"secret", now);
    assert_eq!(check(&sign_in(|_| ()), NOW + 1).unwrap().address, wallet().address);
    let cases: [(Change, Refusal); 9] = [
        (|it| it.domain = "evil.example".to_owned(), Refusal::SIWX_DOMAIN),
        (|it| it.uri = "https://api.example.com/other".to_owned(), Refusal::SIWX_URI),
        (|it| it.chain_id = "eip155:1".to_owned(), Refusal::SIWX_CHAIN),
        (|it| it.nonce = "a1b2c3d4e5f67890a1b2c3d4e5f67890".to_owned(), Refusal::SIWX_NONCE),
        (|it| it.nonce = siwx::new_nonce(b"another", NOW, [5; 8]), Refusal::SIWX_NONCE),
        (|it| it.issued_at = "2031-01-01T00:00:00Z".to_owned(), Refusal::SIWX_FUTURE),
        (|it| it.not_before = Some("2031-01-01T00:00:00Z".to_owned()), Refusal::SIWX_NOT_YET),
        (|it| it.address = Address([3; 20]).to_checksum(), Refusal::SIWX_SIGNATURE),
        (|it| it.statement = Some("a\n\nURI: b".to_owned()), Refusal::SIWX_FORM),
    ];
    for (change, refusal) in cases {
        assert_eq!(check(&sign_in(change), NOW), Err(refusal));
    }
    assert_eq!(check(&sign_in(|_| ()), NOW + 301), Err(Refusal::SIWX_OLD));
    assert_eq!(check("", NOW), Err(Refusal::SIWX_FORM));
}

/// Made with the `mppx` library.
#[test]
fn challenges_are_sealed_as_the_libraries_do() {
    let challenge = mpp::Challenge {
        id: "2JnkK8c5OjL0MLjU7CpJyT_zthSu84foxqOFdyWbZ2w".to_owned(),
        realm: "api.example.com".to_owned(),
        method: "evm".to_owned(),
        intent: "charge".to_owned(),
        request: encoding::to_url_safe(&json!({
            "amount": "10000",
            "currency": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
            "methodDetails": { "chainId": 84532, "credentialTypes": ["authorization"], "decimals": 6 },
            "recipient": PAY_TO,
        })),
        expires: Some("2030-01-01T00:00:00.000Z".to_owned()),
        digest: None,
        opaque: None,
    };
    assert!(challenge.is_sealed_with(b"0123456789abcdef0123456789abcdef"));
    assert!(!challenge.is_sealed_with(b"0123456789abcdef0123456789abcdeg"));
    let nonce = "0x914419430ac1a903c416a570d5fd69141a53ae346dd756b3b0b9fb35efb2c6d7";
    assert_eq!(challenge.nonce().to_hex(), nonce);
    let authorization = Authorization {
        nonce: challenge.nonce(),
        valid_before: 1_893_456_000.into(),
        ..authorization(10_000)
    };
    assert_eq!(
        Word(authorization.digest(&terms(0).domain)).to_hex(),
        "0x4b9fe17f2c4e25c8c7c3a6280e89868ac419437fd1ea9686c0849d8fbc257df8"
    );
}

fn bound(body: &[u8]) -> mpp::Bound<'_> {
    mpp::Bound { realm: "api.example.com", method: "POST", path: "/api/agent/v1/mailboxes", body }
}

#[test]
fn a_challenge_is_answered_for_its_own_request_only() {
    let terms = terms(10_000);
    let challenge = mpp::Challenge::new(&terms, &bound(b"{}"), b"secret", NOW, [1; 12]);
    assert_eq!(mpp::read_challenge(&challenge.header()).unwrap().id, challenge.id);
    let authorization =
        Authorization { nonce: challenge.nonce(), valid_before: (NOW + 300).into(), ..authorization(10_000) };
    let payment = paid(&terms, authorization);
    let credential = mpp::credential(&challenge, &payment);
    let read = |terms: &Terms, bound: &mpp::Bound<'_>, secret: &[u8]| {
        mpp::read(&credential, terms, bound, secret).map(|answered| answered.challenge)
    };
    assert_eq!(read(&terms, &bound(b"{}"), b"secret"), Ok(challenge.id.clone()));
    assert_eq!(read(&terms, &bound(b"{ }"), b"secret"), Err(Refusal::CHALLENGE));
    let elsewhere = mpp::Bound { path: "/api/agent/v1/other", ..bound(b"{}") };
    assert_eq!(read(&terms, &elsewhere, b"secret"), Err(Refusal::CHALLENGE));
    assert_eq!(read(&terms, &bound(b"{}"), b"another"), Err(Refusal::CHALLENGE));
    let dearer = Terms { amount: 10_001, ..terms.clone() };
    assert_eq!(read(&dearer, &bound(b"{}"), b"secret"), Err(Refusal::CHALLENGE));
    let longer = Authorization { valid_before: (NOW + 301).into(), ..authorization };
    let too_long = mpp::credential(&challenge, &paid(&terms, longer));
    assert_eq!(mpp::read(&too_long, &terms, &bound(b"{}"), b"secret").err(), Some(Refusal::CHALLENGE));
    let another_nonce = Authorization { nonce: 1.into(), ..authorization };
    let credential = mpp::credential(&challenge, &paid(&terms, another_nonce));
    let refused = mpp::read(&credential, &terms, &bound(b"{}"), b"secret");
    assert_eq!(refused.err(), Some(Refusal::CHALLENGE));
}

#[test]
fn only_a_clear_yes_of_a_facilitator_is_one() {
    use crate::facilitator::{Settlement, read_settle, read_verify, supports};
    let (terms, payer) = (terms(10_000), wallet().address);
    let hash = format!("0x{}", "ab".repeat(32));
    let settle = |body: Value| read_settle(body.to_string().as_bytes(), &terms, payer);
    let yes =
        json!({ "success": true, "transaction": hash, "network": "eip155:84532", "payer": payer.to_lower() });
    assert_eq!(settle(yes.clone()), Settlement::Done { transaction: hash.clone() });
    for change in [
        json!({ "payer": Address([1; 20]).to_checksum() }),
        json!({ "network": "eip155:1" }),
        json!({ "transaction": "" }),
        json!({ "success": "yes" }),
    ] {
        let mut body = yes.clone();
        merge(&mut body, &change);
        assert!(matches!(settle(body), Settlement::Pending { .. }), "{change}");
    }
    let no = json!({ "success": false, "errorReason": "insufficient_funds", "transaction": "" });
    assert_eq!(settle(no), Settlement::Refused { reason: "insufficient_funds".to_owned() });
    let later = json!({ "success": false, "errorReason": "settlement_pending", "transaction": hash });
    assert!(matches!(settle(later), Settlement::Pending { .. }));
    assert!(matches!(read_settle(b"<html>", &terms, payer), Settlement::Pending { .. }));
    assert_eq!(read_verify(br#"{"isValid":true}"#, payer), Some(Ok(())));
    let bad = br#"{"isValid":false,"invalidReason":"invalid_payload"}"#;
    assert_eq!(read_verify(bad, payer), Some(Err("invalid_payload".to_owned())));
    assert_eq!(read_verify(b"[]", payer), None);
    let kinds = json!({ "kinds": [{ "x402Version": 2, "scheme": "exact", "network": "eip155:84532" }] });
    assert!(supports(kinds.to_string().as_bytes(), "eip155:84532"));
    assert!(!supports(kinds.to_string().as_bytes(), "eip155:8453"));
}

proptest! {
    /// Any header value is read or refused, and never panics.
    #[test]
    fn headers_never_break_the_reader(text in "\\PC{0,300}", bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let terms = terms(10_000);
        let packed = encoding::to_standard(&bytes);
        for header in [text.as_str(), &packed] {
            prop_assert!(x402::read_v2(header, &terms).is_err());
            prop_assert!(x402::read_v1(header, &terms).is_err());
            prop_assert!(siwx::verify(header, &audience(), b"secret", NOW).is_err());
            prop_assert!(mpp::read(header, &terms, &bound(b""), b"secret").is_err());
        }
    }

    /// A signed authorisation counts exactly as signed: every changed field or bit of the signature is refused.
    #[test]
    fn every_field_is_signed(field in 0_usize..6, bit in 0_usize..160, flipped in 0_usize..520) {
        let terms = terms(10_000);
        let payment = paid(&terms, authorization(10_000));
        prop_assert_eq!(verify(&terms, &payment), Ok(()));
        let mut changed = payment;
        let flip = |bytes: &mut [u8]| {
            let last = bytes.len() - 1;
            bytes[last - bit / 8 % bytes.len()] ^= 1 << (bit % 8);
        };
        let it = &mut changed.authorization;
        match field {
            0 => flip(&mut it.from.0),
            1 => flip(&mut it.to.0),
            2 => flip(&mut it.value.0),
            3 => flip(&mut it.valid_after.0),
            4 => flip(&mut it.valid_before.0),
            _ => flip(&mut it.nonce.0),
        }
        prop_assert_eq!(verify(&terms, &changed), Err(Refusal::SIGNATURE));
        let text = payment.signature.to_hex();
        let mut digits: Vec<char> = text.chars().collect();
        let index = 2 + flipped / 4;
        let value = digits[index].to_digit(16).unwrap() ^ (1 << (flipped % 4));
        digits[index] = char::from_digit(value, 16).unwrap();
        if let Some(signature) = Signature::parse(&digits.into_iter().collect::<String>()) {
            prop_assert_eq!(verify(&terms, &Payment { signature, ..payment }), Err(Refusal::SIGNATURE));
        }
    }
}
