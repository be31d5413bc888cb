//! SMTP: the same bytes in any pieces give the same replies and the same messages.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use mail::smtp::{Budget, Protocol, Settings, cut, play};

fuzz_target!(|input: (bool, Vec<u8>, Vec<u8>)| {
    let (lmtp, sizes, bytes) = input;
    let settings = Arc::new(Settings {
        hostname: "mx.test".to_owned(),
        max_message_bytes: 64 * 1024,
        starttls: true,
        budget: Budget::new(1 << 20),
    });
    let protocol = if lmtp { Protocol::Lmtp } else { Protocol::Smtp };
    if sizes.is_empty() {
        return;
    }
    let whole = play(&settings, protocol, std::iter::once(bytes.as_slice()));
    let pieces = play(&settings, protocol, cut(&bytes, &sizes));
    assert_eq!(whole.messages, pieces.messages);
});
