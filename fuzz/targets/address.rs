//! Addresses: what is taken is shown in a form that is taken as the same, and can break out of nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mail::address::{Address, MAX_ADDRESS_BYTES, Mailbox};

fuzz_target!(|text: &str| {
    if let Ok(address) = Address::parse(text) {
        assert!(address.as_str().len() <= MAX_ADDRESS_BYTES);
        assert!(
            !address
                .as_str()
                .contains(|c: char| c.is_control() || c.is_whitespace() || "<>,;:\"".contains(c))
        );
        assert_eq!(Address::parse(address.as_str()).as_ref(), Ok(&address));
        let bare = address.without_tag();
        assert_eq!(bare.tag(), None);
        assert_eq!(Address::parse(bare.as_str()).as_ref(), Ok(&bare));
    }
    if let Ok(mailbox) = Mailbox::parse(text) {
        let shown = mailbox.to_string();
        assert!(!shown.contains(char::is_control));
        assert_eq!(Mailbox::parse(&shown), Ok(mailbox));
    }
});
