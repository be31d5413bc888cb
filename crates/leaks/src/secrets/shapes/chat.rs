//! Chat, messaging and mail services.

use crate::secrets::shape::{SETTING, Shape, TOKEN};
use crate::{finding::Mask, secrets::checks};

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        name: "slack_token",
        starts: &[
            "xoxa-", "xoxb-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xoxc-", "xoxd-", "xapp-",
        ],
        value: r"(?:xox[abceoprsd]-|xoxe\.xox[bp]-|xapp-)[0-9A-Za-z%-]{10,260}",
        check: checks::slack,
        matches: &[
            "xoxb-{{digits:12}}-{{digits:13}}-{{base62:24}}",
            "xapp-1-A{{upper:10}}-{{digits:13}}-{{hex:64}}",
        ],
        misses: &["xoxb-your-token-here", "xoxb-xxxxxxxxxxxx-xxxxxxxxxxxx"],
        ..TOKEN
    },
    Shape {
        name: "slack_webhook",
        starts: &["hooks.slack.com/"],
        lead: r"hooks\.slack\.com/(?:services|workflows|triggers)/",
        value: r"[TE][A-Z0-9]{7,12}/[A-Z0-9]{8,20}/[A-Za-z0-9]{20,40}(?:/[A-Za-z0-9]{20,40})?",
        matches: &["https://hooks.slack.com/services/T{{upper:9}}/B{{upper:9}}/{{base62:24}}"],
        misses: &["https://hooks.slack.com/services/T00000000/B00000000/{{repeat:X:24}}"],
        ..SETTING
    },
    Shape {
        name: "discord_token",
        starts: &["."],
        back: 28,
        value: r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,40}",
        check: checks::discord,
        mask: Mask::Prefix(0),
        matches: &["{{discord}}"],
        misses: &["M{{base62:23}}.{{base62:6}}.{{base62:27}}"],
        ..TOKEN
    },
    Shape {
        name: "discord_webhook",
        starts: &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"],
        lead: r"discord(?:app)?\.com/api/webhooks/\d{17,20}/",
        value: r"[A-Za-z0-9_-]{60,80}",
        matches: &["https://discord.com/api/webhooks/{{digits:18}}/{{base64url:68}}"],
        misses: &["https://discord.com/api/webhooks/{id}/{token}"],
        ..SETTING
    },
    Shape {
        name: "teams_webhook",
        starts: &["webhook.office.com/"],
        lead: r"webhook\.office\.com/webhookb2/[0-9a-f-]{36}@[0-9a-f-]{36}/IncomingWebhook/",
        value: r"[0-9a-f]{32}/[0-9a-f-]{36}",
        matches: &[
            "https://a.webhook.office.com/webhookb2/{{uuid}}@{{uuid}}/IncomingWebhook/{{hex:32}}/{{uuid}}",
        ],
        ..SETTING
    },
    Shape {
        name: "telegram_bot_token",
        starts: &[":AA"],
        back: 13,
        whole: false,
        value: r"(?:bot)?\d{8,10}:AA[A-Za-z0-9_-]{33}",
        check: checks::random_and_whole,
        mask: Mask::Prefix(0),
        matches: &[
            "https://api.telegram.org/bot{{digits:10}}:AA{{base64url:33}}/getMe",
            "{{digits:9}}:AA{{base64url:33}}",
        ],
        misses: &["12:AA{{base64url:33}}"],
        ..TOKEN
    },
    Shape {
        name: "twilio_key",
        starts: &["SK"],
        value: r"SK[0-9a-f]{32}",
        mask: Mask::Prefix(2),
        matches: &["SK{{hex:32}}"],
        misses: &["SK{{hex:30}}", "SKU-{{digits:10}}"],
        ..TOKEN
    },
    Shape {
        name: "twilio_auth_token",
        starts: &["twilio", "auth_token", "authToken", "auth token"],
        lead: r#"(?i:twilio[\w .-]{0,20}|auth[_ ]?token)["']{0,2}\s{0,3}(?:=|:|=>)\s{0,3}["'`]?"#,
        value: r"[0-9a-f]{32}",
        matches: &["TWILIO_AUTH_TOKEN={{hex:32}}", "AC{{hex:32}} auth token: {{hex:32}}"],
        misses: &["twilio message {{hex:32}}"],
        ..SETTING
    },
    Shape {
        name: "sendgrid_key",
        starts: &["SG."],
        value: r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
        mask: Mask::Prefix(3),
        matches: &["SG.{{base64url:22}}.{{base64url:43}}"],
        misses: &["SG.{{repeat:x:22}}.{{repeat:x:43}}"],
        ..TOKEN
    },
    Shape {
        name: "mailgun_key",
        starts: &["key-"],
        value: r"key-[0-9a-f]{32}",
        matches: &["api:key-{{hex:32}}"],
        misses: &["key-{{hex:20}}"],
        ..TOKEN
    },
    Shape {
        name: "mailgun_key",
        starts: &["mailgun"],
        lead: r#"(?i:mailgun)[\w .-]{0,20}["']{0,2}\s{0,3}(?:=|:)\s{0,3}["']?"#,
        value: r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}",
        matches: &["MAILGUN_API_KEY={{hex:32}}-{{hex:8}}-{{hex:8}}"],
        ..SETTING
    },
    Shape {
        name: "mailchimp_key",
        starts: &["-us"],
        back: 32,
        value: r"[0-9a-f]{32}-us\d{1,2}",
        mask: Mask::Prefix(0),
        matches: &["{{hex:32}}-us14"],
        misses: &["about-us12", "{{hex:30}}-us1"],
        ..TOKEN
    },
    Shape {
        name: "brevo_key",
        starts: &["xkeysib-", "xsmtpsib-"],
        value: r"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}",
        matches: &["xkeysib-{{hex:64}}-{{base62:16}}"],
        ..TOKEN
    },
    Shape {
        name: "resend_key",
        starts: &["re_"],
        value: r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}",
        mask: Mask::Prefix(3),
        matches: &["re_{{base62:8}}_{{base62:24}}"],
        ..TOKEN
    },
];
