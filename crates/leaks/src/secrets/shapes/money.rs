//! Payments and shops.

use crate::secrets::checks;
use crate::secrets::shape::{Shape, TOKEN};

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        name: "stripe_key",
        starts: &["sk_live_", "rk_live_", "sk_test_", "rk_test_"],
        value: r"[sr]k_(?:live|test)_[0-9A-Za-z]{20,247}",
        matches: &["sk_live_{{base62:24}}", "rk_test_51{{base62:97}}"],
        misses: &["pk_live_{{base62:24}}", "sk_test_{{repeat:x:24}}", "sk_live_short"],
        ..TOKEN
    },
    Shape {
        name: "webhook_secret",
        starts: &["whsec_"],
        value: r"whsec_[A-Za-z0-9+/]{32,64}={0,2}",
        matches: &["whsec_{{base62:32}}", "whsec_{{base64:43}}="],
        misses: &["whsec_...", "whsec_your_signing_secret"],
        ..TOKEN
    },
    Shape {
        name: "square_token",
        starts: &["sq0atp-", "sq0csp-", "EAAA"],
        value: r"(?:sq0atp-[0-9A-Za-z_-]{22}|sq0csp-[0-9A-Za-z_-]{43}|EAAA[A-Za-z0-9_-]{60})",
        matches: &["sq0atp-{{base64url:22}}", "sq0csp-{{base64url:43}}", "EAAA{{base64url:60}}"],
        misses: &["sq0idp-{{base64url:22}}"],
        ..TOKEN
    },
    Shape {
        name: "paypal_token",
        starts: &["access_token$"],
        value: r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}",
        matches: &["access_token$production${{lower:16}}${{hex:32}}"],
        ..TOKEN
    },
    Shape {
        name: "shopify_token",
        starts: &["shpat_", "shpca_", "shppa_", "shpss_"],
        value: r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
        matches: &["shpat_{{hex:32}}"],
        misses: &["shpat_{{repeat:x:32}}"],
        ..TOKEN
    },
    Shape {
        name: "razorpay_key",
        starts: &["rzp_live_"],
        value: r"rzp_live_[A-Za-z0-9]{14}",
        matches: &["rzp_live_{{base62:14}}"],
        ..TOKEN
    },
    Shape {
        name: "plaid_token",
        starts: &["access-production-", "access-sandbox-", "access-development-"],
        value: r"access-(?:production|sandbox|development)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        check: checks::always,
        matches: &["access-production-{{uuid}}"],
        ..TOKEN
    },
    Shape {
        name: "mollie_key",
        starts: &["live_"],
        value: r"live_[A-Za-z0-9]{30}",
        check: checks::very_random,
        matches: &["live_{{base62:30}}"],
        misses: &["live_chat_widget_enabled"],
        ..TOKEN
    },
];
