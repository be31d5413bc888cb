//! Keys by their own format, this service's among them, and signed tokens.

use crate::secrets::shape::{SETTING, Shape, TOKEN};
use crate::{finding::Mask, secrets::checks};

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        name: "private_key",
        starts: &["-----BEGIN "],
        whole: false,
        value: r#"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|[\s>|"'+\\])*(?:[A-Za-z-]{4,20}: [^\n\\]{1,80}(?:\\[nr]|[\s>|])+){0,4}[A-Za-z0-9+/=]{12,100}(?:\\[nr]|[\s>|"'+\\])+[A-Za-z0-9+/=]{2}"#,
        ending: Some("-----END"),
        check: checks::key_block,
        mask: Mask::Header,
        matches: &[
            "-----BEGIN RSA PRIVATE KEY-----\n{{pem:4}}\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN OPENSSH PRIVATE KEY-----\n{{pem:4}}\n-----END OPENSSH PRIVATE KEY-----",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{{pem:4}}\n-----END PGP PRIVATE KEY BLOCK-----",
            r#"{"private_key": "-----BEGIN PRIVATE KEY-----\n{{base64:64}}\n{{base64:64}}\n-----END PRIVATE KEY-----\n"}"#,
        ],
        misses: &[
            "-----BEGIN PUBLIC KEY-----\n{{pem:4}}\n-----END PUBLIC KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN CERTIFICATE-----\n{{pem:4}}\n-----END CERTIFICATE-----",
        ],
        ..TOKEN
    },
    Shape {
        name: "putty_private_key",
        starts: &["PuTTY-User-Key-File-"],
        value: r"PuTTY-User-Key-File-[23]: [ -~]{1,40}\r?\n(?:[ -~]*\r?\n){1,20}Private-Lines: \d",
        ending: Some("Private-MAC"),
        check: checks::always,
        mask: Mask::Header,
        matches: &[
            "PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nComment: a\nPublic-Lines: 1\n{{base64:64}}\nPrivate-Lines: 1\n{{base64:64}}\nPrivate-MAC: {{hex:40}}",
        ],
        ..TOKEN
    },
    Shape {
        name: "age_secret_key",
        starts: &["AGE-SECRET-KEY-1"],
        value: r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}",
        matches: &["AGE-SECRET-KEY-1{{bech32:58}}"],
        misses: &["AGE-SECRET-KEY-1XXXXXXXX"],
        ..TOKEN
    },
    Shape {
        name: "wireguard_key",
        starts: &["PrivateKey", "PresharedKey"],
        lead: r"(?:PrivateKey|PresharedKey)\s{0,3}=\s{0,3}",
        value: r"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw480]=",
        matches: &["[Interface]\nPrivateKey = {{base64:42}}8="],
        misses: &["PublicKey = {{base64:42}}8=", "PrivateKey = <the key of your device>"],
        ..SETTING
    },
    Shape {
        name: "agent_mailbox_key",
        starts: &["sk-proj-"],
        value: r"sk-proj-[0-9A-Za-z]{49}",
        check: checks::own_key,
        matches: &["x-api-key: {{own_key}}"],
        misses: &["sk-proj-{{base62:49}}x"],
        ..TOKEN
    },
    Shape {
        name: "agent_mailbox_confirmation",
        starts: &["cnf_"],
        value: r"cnf_[0-9A-Za-z]{43}",
        matches: &["cnf_{{base62:43}}"],
        misses: &["cnf_{{base62:20}}"],
        ..TOKEN
    },
    Shape {
        name: "json_web_token",
        starts: &["eyJ", "ewog"],
        value: r"e[A-Za-z0-9_-]{15,800}\.[A-Za-z0-9_-]{10,2400}\.[A-Za-z0-9_-]{16,700}",
        check: checks::json_web_token,
        mask: Mask::Prefix(3),
        matches: &["token {{jwt}}"],
        misses: &["eyJ{{base64url:40}}.{{base64url:60}}.{{base64url:43}}x.y"],
        ..TOKEN
    },
];
