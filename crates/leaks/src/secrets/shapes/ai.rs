//! Providers of language models.

use crate::finding::Mask;
use crate::secrets::shape::{Shape, TOKEN};

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        name: "anthropic_key",
        starts: &["sk-ant-"],
        value: r"sk-ant-(?:api|admin|oat|ort|sid)\d\d-[A-Za-z0-9_-]{40,130}",
        matches: &["sk-ant-api03-{{base64url:93}}AA"],
        misses: &["sk-ant-api03-your-key-here", "sk-ant-..."],
        ..TOKEN
    },
    Shape {
        name: "openai_key",
        starts: &["sk-"],
        value: r"sk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_-]{18,100}T3BlbkFJ[A-Za-z0-9_-]{18,100}",
        mask: Mask::Prefix(3),
        matches: &[
            "sk-{{base62:20}}T3BlbkFJ{{base62:20}}",
            "sk-proj-{{base64url:74}}T3BlbkFJ{{base64url:74}}",
        ],
        misses: &["sk-{{repeat:x:20}}T3BlbkFJ{{repeat:x:20}}", "sk-learn-contributors"],
        ..TOKEN
    },
    Shape {
        name: "openai_key",
        starts: &["sk-proj-", "sk-svcacct-"],
        value: r"sk-(?:proj|svcacct)-[A-Za-z0-9_-]{40,180}",
        matches: &["sk-proj-{{base64url:60}}"],
        misses: &["sk-proj-{{base62:8}}", "sk-proj-your_api_key_goes_here_0000000000000000000"],
        ..TOKEN
    },
    Shape {
        name: "openrouter_key",
        starts: &["sk-or-v1-"],
        value: r"sk-or-v1-[a-f0-9]{64}",
        matches: &["sk-or-v1-{{hex:64}}"],
        ..TOKEN
    },
    Shape {
        name: "huggingface_token",
        starts: &["hf_", "api_org_"],
        value: r"(?:hf|api_org)_[A-Za-z]{34}",
        mask: Mask::Prefix(3),
        matches: &["HF_TOKEN=hf_{{letters:34}}"],
        misses: &["hf_hub_download", "hf_{{repeat:x:34}}"],
        ..TOKEN
    },
    Shape {
        name: "replicate_token",
        starts: &["r8_"],
        value: r"r8_[A-Za-z0-9]{37}",
        mask: Mask::Prefix(3),
        matches: &["r8_{{base62:37}}"],
        ..TOKEN
    },
    Shape {
        name: "groq_key",
        starts: &["gsk_"],
        value: r"gsk_[A-Za-z0-9]{52}",
        matches: &["gsk_{{base62:52}}"],
        ..TOKEN
    },
    Shape {
        name: "perplexity_key",
        starts: &["pplx-"],
        value: r"pplx-[A-Za-z0-9]{48}",
        matches: &["pplx-{{base62:48}}"],
        ..TOKEN
    },
    Shape {
        name: "xai_key",
        starts: &["xai-"],
        value: r"xai-[A-Za-z0-9]{80}",
        matches: &["xai-{{base62:80}}"],
        ..TOKEN
    },
];
