//! Other services: monitoring, design, planning, data.

use crate::finding::Mask;
use crate::secrets::shape::{Shape, TOKEN};

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        name: "linear_key",
        starts: &["lin_api_", "lin_oauth_"],
        value: r"lin_(?:api|oauth)_[A-Za-z0-9]{40,64}",
        matches: &["lin_api_{{base62:40}}"],
        misses: &["lin_api_key"],
        ..TOKEN
    },
    Shape {
        name: "notion_token",
        starts: &["ntn_", "secret_"],
        value: r"(?:ntn_[0-9]{11}[A-Za-z0-9]{35}|secret_[A-Za-z0-9]{43})",
        matches: &["ntn_{{digits:11}}{{base62:35}}", "secret_{{base62:43}}"],
        misses: &["secret_santa", "ntn_token"],
        ..TOKEN
    },
    Shape {
        name: "figma_token",
        starts: &["figd_", "figo_"],
        value: r"fig[do]_[A-Za-z0-9_-]{38,48}",
        matches: &["figd_{{base64url:40}}"],
        misses: &["figd_{{repeat:x:40}}"],
        ..TOKEN
    },
    Shape {
        name: "grafana_token",
        starts: &["glsa_", "glc_"],
        value: r"(?:glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|glc_[A-Za-z0-9+/]{32,400}={0,3})",
        matches: &["glsa_{{base62:32}}_{{hex:8}}", "glc_{{base64:100}}"],
        misses: &["glsa_token"],
        ..TOKEN
    },
    Shape {
        name: "newrelic_key",
        starts: &["NRAK-", "NRII-", "NRJS-"],
        value: r"NR(?:AK-[A-Z0-9]{27}|II-[A-Za-z0-9-]{32}|JS-[a-f0-9]{19})",
        matches: &["NRAK-{{upper:27}}"],
        ..TOKEN
    },
    Shape {
        name: "sentry_token",
        starts: &["sntrys_", "sntryu_"],
        value: r"(?:sntryu_[a-f0-9]{64}|sntrys_eyJ[A-Za-z0-9+/=_]{80,400})",
        matches: &["sntryu_{{hex:64}}", "sntrys_eyJ{{base64:120}}_{{base64:43}}"],
        misses: &["sntryu_token"],
        ..TOKEN
    },
    Shape {
        name: "dynatrace_token",
        starts: &["dt0c01.", "dt0s01."],
        value: r"dt0[cs]01\.[A-Z2-7]{24}\.[A-Z2-7]{64}",
        matches: &["dt0c01.{{base32:24}}.{{base32:64}}"],
        ..TOKEN
    },
    Shape {
        name: "airtable_token",
        starts: &["pat"],
        value: r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}",
        mask: Mask::Prefix(3),
        matches: &["pat{{base62:14}}.{{hex:64}}"],
        ..TOKEN
    },
    Shape {
        name: "hubspot_token",
        starts: &["pat-na", "pat-eu"],
        value: r"pat-(?:na|eu)\d-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        matches: &["pat-na1-{{uuid}}"],
        ..TOKEN
    },
    Shape {
        name: "contentful_token",
        starts: &["CFPAT-"],
        value: r"CFPAT-[A-Za-z0-9_-]{43}",
        matches: &["CFPAT-{{base64url:43}}"],
        ..TOKEN
    },
    Shape {
        name: "typeform_token",
        starts: &["tfp_"],
        value: r"tfp_[A-Za-z0-9_.=-]{40,64}",
        matches: &["tfp_{{base62:44}}_{{base62:14}}"],
        ..TOKEN
    },
    Shape {
        name: "facebook_token",
        starts: &["EAA"],
        value: r"EAA[A-Z][A-Za-z0-9]{90,250}",
        mask: Mask::Prefix(3),
        matches: &["EAAG{{base62:150}}"],
        ..TOKEN
    },
    Shape {
        name: "onepassword_token",
        starts: &["ops_eyJ"],
        value: r"ops_eyJ[A-Za-z0-9+/=_-]{200,1200}",
        matches: &["ops_eyJ{{base64:400}}"],
        ..TOKEN
    },
];
