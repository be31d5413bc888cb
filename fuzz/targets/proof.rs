//! Proofs of payment: whatever a header says is read or refused within its bounds, and only what was signed counts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pay::{Address, Terms, encoding, facilitator, mpp, networks, siwx, x402};
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let network = &networks::NETWORKS[0];
    let terms = Terms {
        network: network.id.to_owned(),
        v1_network: network.v1_name.to_owned(),
        domain: network.domain(),
        pay_to: Address([4; 20]),
        amount: 10_000,
        max_timeout: 300,
    };
    let audience = siwx::Audience {
        domain: "mail.test".to_owned(),
        uri: "http://mail.test/api".to_owned(),
        network: network.id.to_owned(),
        statement: "Show your wallet".to_owned(),
    };
    let text = String::from_utf8_lossy(bytes);
    // As it comes, and packed as a client would pack it.
    let packed = serde_json::from_slice::<Value>(bytes).ok();
    let standard = packed.as_ref().map(encoding::to_standard).unwrap_or_default();
    let url_safe = packed.as_ref().map(encoding::to_url_safe).unwrap_or_default();
    for header in [&*text, &standard, &url_safe] {
        for payment in [x402::read_v2(header, &terms), x402::read_v1(header, &terms)].into_iter().flatten() {
            // Nobody has signed anything here.
            let kept = facilitator::recall(&facilitator::keep(&payment)).expect("what was read can be kept");
            assert_eq!(kept.authorization, payment.authorization);
            let _ = pay::verify(&terms, &payment);
            let _ = pay::within_time(&terms, &payment.authorization, 1_800_000_000);
        }
        assert!(siwx::verify(header, &audience, b"secret", 1_800_000_000).is_err());
        let bound = mpp::Bound { realm: "mail.test", method: "POST", path: "/", body: b"" };
        assert!(mpp::read(header, &terms, &bound, b"secret").is_err());
        let _ = mpp::read_challenge(header);
    }
    let _ = facilitator::read_settle(bytes, &terms, Address([1; 20]));
    let _ = facilitator::read_verify(bytes, Address([1; 20]));
    let _ = facilitator::supports(bytes, network.id);
});
