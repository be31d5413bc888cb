//! Prints how long searches take: of an ordinary message of 10 KB, and of texts made to be slow.
//!
//! `cargo run --release -p leaks --example speed`

use std::{fmt::Write as _, hint::black_box, time::Instant};

use leaks::{Search, find, fingerprints::Fingerprinter};

/// What is measured, with its name.
type Work<'a> = (&'a str, &'a dyn Fn(&str));

const BOTH: Search = Search { secrets: true, personal: true };
const MESSAGE_BYTES: usize = 10_240;
const HOSTILE_BYTES: usize = 1 << 20;
const ROUNDS: usize = 2000;

/// Sentences, numbers, links and settings as business mail and logs have them.
const PARTS: &[&str] = &[
    "Hi Jonas, thanks for the call on Tuesday. Please find the revised offer below; the price is 12,480.50 EUR net.\n",
    "Order 4058231177 from 2025-03-14 will be shipped with tracking number 00340434161094022115 tomorrow.\n",
    "You can reset your password here: https://app.example.com/reset?token=b7f1c9d2e4a84f0c9d1e2f3a4b5c6d7e\n",
    "2025-03-14T10:22:31.123Z INFO request_id=7f3c2b1a-9d8e-4f7a-b6c5-d4e3f2a1b0c9 status=200 duration_ms=18\n",
    "Call me on +49 30 901820 or write to sales@example.com, support@example.org or the team in Lyon.\n",
    "The api key for staging is in the vault; never put a secret or a token into a ticket.\n",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 fixes the import of IBANs (DE, FR and ES) of 16 customers\n",
    "Für Rückfragen stehe ich Ihnen gerne zur Verfügung. Mit freundlichen Grüßen, Anna Schmidt, Hauptstraße 12\n",
];

fn main() {
    let fingerprinter = Fingerprinter::new(&[3; 32]);
    let messages: Vec<String> = (0..50).map(message).collect();
    let begin = Instant::now();
    find(&messages[0], BOTH);
    println!("first search, with the patterns compiled: {:.1?}", begin.elapsed());
    for text in &messages {
        find(text, BOTH);
    }
    let work: [Work<'_>; 3] = [
        ("find", &|text| drop(black_box(find(text, BOTH)))),
        ("of_received", &|text| drop(black_box(fingerprinter.of_received(text)))),
        ("of_outgoing", &|text| drop(black_box(fingerprinter.of_outgoing(text)))),
    ];
    for (name, work) in work {
        let mut times: Vec<u128> = (0..ROUNDS)
            .map(|round| {
                let begin = Instant::now();
                work(&messages[round % messages.len()]);
                begin.elapsed().as_micros()
            })
            .collect();
        times.sort_unstable();
        println!("{name}, 10 KB: p50 {} µs, p99 {} µs", times[ROUNDS / 2], times[ROUNDS * 99 / 100]);
    }
    for part in [
        "a",
        "AKIA",
        "-----BEGIN ",
        "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n",
        "http://",
        "://a:",
        "1",
        "1 ",
        "4111 1111 1111 1112 ",
        "@",
        "a@b.cd ",
        "password:",
        "password is ",
        "x=sk-",
        ".",
        "M.",
        "eyJ.",
        "key: ",
        "token=a1b2c3d4 ",
        "\u{200b}a",
        "１",
        "secret eyJ0eXAi-",
        "DE89 3704 ",
        "A1 ",
        "\u{43f}\u{430}\u{440}: ",
    ] {
        let text = part.repeat(HOSTILE_BYTES / part.len());
        let begin = Instant::now();
        black_box(find(&text, BOTH));
        let found = begin.elapsed();
        let begin = Instant::now();
        black_box((fingerprinter.of_received(&text), fingerprinter.of_outgoing(&text)));
        let marked = begin.elapsed();
        println!("1 MB of {part:?}: find {found:.1?}, fingerprints {marked:.1?}");
    }
}

/// Another mixture of the parts for each seed.
fn message(seed: usize) -> String {
    let mut text = String::new();
    let mut state = seed * 7919 + 13;
    while text.len() < MESSAGE_BYTES {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(PARTS[(state >> 33) % PARTS.len()]);
        let _ = writeln!(text, "Item {}: {} pcs", (state >> 20) % 100_000, (state >> 40) % 90);
    }
    text
}
