//! Code hosts, registries of packages and what builds run on.

use crate::secrets::shape::{Shape, TOKEN};
use crate::{finding::Mask, secrets::checks};

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        name: "github_token",
        starts: &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        value: r"gh[pousr]_[0-9A-Za-z]{36}",
        check: checks::github,
        matches: &[
            "{{checked:ghp_}}",
            "https://{{checked:gho_}}@github.com/a/b.git",
            r"\n{{checked:ghs_}}\n",
        ],
        misses: &["ghp_{{base62:35}}", "ghp_{{repeat:x:36}}", "ghp_{{base62:36}}"],
        ..TOKEN
    },
    Shape {
        name: "github_token",
        starts: &["github_pat_"],
        value: r"github_pat_[0-9A-Za-z]{22}_[0-9A-Za-z]{59}",
        matches: &["github_pat_{{base62:22}}_{{base62:59}}"],
        misses: &["github_pat_{{repeat:x:22}}_{{repeat:x:59}}"],
        ..TOKEN
    },
    Shape {
        name: "gitlab_token",
        starts: &[
            "glpat-",
            "gldt-",
            "glrt-",
            "glrtr-",
            "glptt-",
            "glcbt-",
            "glft-",
            "glimt-",
            "glagent-",
            "glsoat-",
            "glffct-",
            "gloas-",
            "GR1348941",
        ],
        value: r"(?:gl(?:pat|dt|rtr?|ptt|cbt|ft|imt|agent|soat|ffct|oas)-|GR1348941)(?:t\d_)?[0-9A-Za-z_-]{20,300}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?",
        matches: &["glpat-{{base64url:20}}", "glptt-{{hex:40}}", "glpat-{{base62:27}}.01.{{lower:9}}"],
        misses: &["glpat-{{repeat:x:20}}", "glpat-short"],
        ..TOKEN
    },
    Shape {
        name: "npm_token",
        starts: &["npm_"],
        value: r"npm_[0-9A-Za-z]{36}",
        check: checks::very_random,
        matches: &["//registry.npmjs.org/:_authToken={{checked:npm_}}"],
        misses: &["npm_config_registry", "npm_{{repeat:x:36}}"],
        ..TOKEN
    },
    Shape {
        name: "npm_token",
        starts: &["_authToken", "_auth"],
        whole: false,
        lead: r#"_auth(?:Token)?["']?\s{0,2}=\s{0,2}["']?"#,
        value: r"[A-Za-z0-9+/=_-]{20,120}",
        mask: Mask::Hidden,
        matches: &["//npm.example.com/:_authToken={{uuid}}", "_auth={{base64:32}}"],
        misses: &["_authToken=${NPM_TOKEN}"],
        ..TOKEN
    },
    Shape {
        name: "pypi_token",
        starts: &["pypi-AgE"],
        value: r"pypi-AgE[A-Za-z0-9_-]{50,400}",
        matches: &["pypi-AgEIcHlwaS5vcmc{{base64url:120}}", "pypi-AgENdGVzdC5weXBpLm9yZw{{base64url:120}}"],
        misses: &["pypi-AgEIcHlwaS5vcmc"],
        ..TOKEN
    },
    Shape {
        name: "rubygems_key",
        starts: &["rubygems_"],
        value: r"rubygems_[a-f0-9]{48}",
        matches: &["rubygems_{{hex:48}}"],
        ..TOKEN
    },
    Shape {
        name: "crates_io_token",
        starts: &["cio"],
        value: r"cio[A-Za-z0-9]{32}",
        check: checks::very_random,
        mask: Mask::Prefix(3),
        matches: &["cio{{base62:32}}"],
        ..TOKEN
    },
    Shape {
        name: "docker_token",
        starts: &["dckr_pat_", "dckr_oat_"],
        value: r"dckr_[po]at_[A-Za-z0-9_-]{27,40}",
        matches: &["docker login -u a -p dckr_pat_{{base64url:27}}"],
        misses: &["dckr_pat_{{repeat:x:27}}"],
        ..TOKEN
    },
    Shape {
        name: "atlassian_token",
        starts: &["ATATT3", "ATCTT3", "ATBB"],
        value: r"(?:AT[AC]TT3[A-Za-z0-9_=-]{50,230}|ATBB[A-Za-z0-9]{24}[A-F0-9]{8})",
        matches: &["ATATT3xFfGF0{{base64url:170}}={{upper_hex:8}}", "ATBB{{base62:24}}{{upper_hex:8}}"],
        misses: &["ATATT3"],
        ..TOKEN
    },
    Shape {
        name: "buildkite_token",
        starts: &["bkua_", "bkct_"],
        value: r"bk(?:ua|ct)_[a-f0-9]{40}",
        matches: &["bkua_{{hex:40}}"],
        ..TOKEN
    },
    Shape {
        name: "circleci_token",
        starts: &["CCIPAT_", "CCIPRJ_"],
        value: r"CCIP(?:AT|RJ)_[A-Za-z0-9]{22}_[a-f0-9]{40}",
        matches: &["CCIPAT_{{base62:22}}_{{hex:40}}"],
        ..TOKEN
    },
    Shape {
        name: "sonar_token",
        starts: &["sqp_", "squ_", "sqa_"],
        value: r"sq[pua]_[a-f0-9]{40}",
        matches: &["squ_{{hex:40}}"],
        ..TOKEN
    },
    Shape {
        name: "doppler_token",
        starts: &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
        value: r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}",
        matches: &["dp.pt.{{base62:43}}", "dp.st.prd.{{base62:43}}"],
        misses: &["dp.pt.token"],
        ..TOKEN
    },
    Shape {
        name: "postman_key",
        starts: &["PMAK-"],
        value: r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
        matches: &["PMAK-{{hex:24}}-{{hex:34}}"],
        ..TOKEN
    },
];
