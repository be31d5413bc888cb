//! Phrases of single providers, where what they publish about their replies differs from what the words or the codes
//! say to everybody else.

use super::rule::{Rule, block, full, hard, policy, soft};

/// The first phrase that the text has decides.
pub(super) const GROUPS: &[&[Rule]] = &[
    GMAIL, MICROSOFT, YAHOO, AOL, ICLOUD, GERMAN, FRENCH, AMERICAN, RUSSIAN, CHINESE, MIMECAST, PROOFPOINT,
    BARRACUDA, JAPANESE, AMAZON, ZOHO, GATEWAYS, OWN,
];

/// <https://knowledge.workspace.google.com/admin/support/troubleshooting/gmail-smtp-errors-and-codes>
const GMAIL: &[Rule] = &[
    hard("p=nosuchuser"),
    hard("p=disableduser"),
    hard("email account that you tried to reach is disabled"),
    hard("email account that you tried to reach is inactive"),
    full("p=overquota"),
    soft("p=receivingrate"),
    soft("receiving mail at a rate that"),
    soft("receiving email too quickly"),
    policy("p=blockedmessage"),
    policy("presents a potential security issue"),
    policy("p=rfcmessagenoncompliant"),
    policy("is not rfc 5322 compliant"),
    policy("p=maxsizeerror"),
    policy("email policy. - gcdp"),
];

/// <https://learn.microsoft.com/exchange/mail-flow-best-practices/non-delivery-reports-in-exchange-online>
const MICROSOFT: &[Rule] = &[
    hard("recipient address rejected: access denied").with_status(4, 1),
    hard("dns domain * does not exist").with_status(4, 310),
    hard("returned unknown recipient"),
    full("mailbox is full. create a shorter message"),
    full("shutoffquotaexceeded"),
    soft("queue quota exceeded"),
    soft("storedrv.deliver; recipient thread limit"),
    soft("exceeded their limit for the number of messages"),
    soft("exceeded the limit for the number of messages"),
    soft("maximum number of concurrent"),
    block("bad outbound sender"),
    block("traffic not accepted from this ip"),
    block("sc-001 "),
    block("tenant has exceeded threshold"),
    block("does not meet the required authentication level"),
    block("doesn't meet the required authentication level"),
    policy("using customer block list"),
    policy("tenant allow block list"),
    policy("resolver.rst."),
];

/// <https://senders.yahooinc.com/smtp-error-codes/>
const YAHOO: &[Rule] = &[
    hard("554 delivery error: dd this user doesn't have"),
    hard("delivery error: dd not a valid recipient"),
    hard("mail action aborted, mailbox not found"),
    block("[tss0"),
    block("[ts0"),
    block("help.yahoo.com/help/us/mail/defer"),
    block("[bl21]"),
    block("[bl23]"),
    block("[ph01]"),
    block("message not accepted for policy reasons"),
    block("dm email not accepted for policy reasons"),
    block("excessive unknown recipients"),
    soft("max message per connection"),
];

/// Its old codes, which other servers still copy.
const AOL: &[Rule] = &[
    block("(hvu:"),
    block("(rtr:"),
    block("(rly:"),
    block("(con:"),
    block("(dyn:"),
    block("(dns:n"),
    block("aol will not accept delivery"),
];

/// <https://support.apple.com/102322>
const ICLOUD: &[Rule] = &[
    block("[cs01]"),
    block("[hm08]"),
    // The owner can switch the address on again.
    soft("inactive email address"),
];

/// GMX, WEB.DE and T-Online: <https://postmaster.gmx.net>
const GERMAN: &[Rule] = &[
    policy("policy restrictions (header based)"),
    block("reject due to policy restrictions"),
    block("ip=* a problem occurred"),
    full("hat das speichervolumen"),
    full("zuviele mails auf dem server"),
];

/// Orange, Free and La Poste.
const FRENCH: &[Rule] = &[
    hard("ofr_416"),
    full("ofr_417"),
    hard("lpn007_416"),
    block("ofr_506"),
    block("ofr006_102"),
    block("lpn007_517"),
    // A blocked account may be opened again.
    soft("lpn007_426"),
    soft("blocked due to inactivity"),
    soft("inactive mailbox, not poped"),
];

/// AT&T, Charter, Comcast, Cox, `GoDaddy` and Rackspace.
const AMERICAN: &[Rule] = &[
    block("fix reverse dns for"),
    block(" cxbl"),
    block("error-codes * aup#"),
    block("error codes * aup#"),
    block("bizsmtp rbl reject"),
    block("from a new or untrusted ip"),
    hard("could not be found, or was misspelled"),
    soft("has sent to too many recipients"),
    soft("too many recent messages"),
    soft("code.php#rl0"),
    soft("codes.php#rl0"),
];

/// Mail.ru, Rambler and Yandex.
const RUSSIAN: &[Rule] = &[
    hard("-- invalid mailbox. local mailbox"),
    soft("recipient address rejected: inactive"),
    policy("recipient address rejected: blocked"),
    policy("policy rejection on the target address"),
];

/// QQ and `NetEase`: <https://help.mail.163.com>, <https://service.mail.qq.com>
const CHINESE: &[Rule] = &[
    block("mail content denied"),
    // The recipient gets too much mail for now.
    soft("mailbox unavailable or access denied"),
    block("dt:spm"),
    block("dt:rbl"),
    block("hl:rep"),
    block("hl:mep"),
    block("mi:spf"),
    block("mi:spb"),
    soft("hl:icc"),
    soft("hl:ifc"),
    soft("mi:sfq"),
    soft("ip frequency limited"),
    soft("connection frequency limited"),
    soft("sender frequency limited"),
    policy("user in blacklist"),
];

/// <https://mimecastsupport.zendesk.com/hc/en-us/articles/34000709564691>
const MIMECAST: &[Rule] = &[
    policy("anti-spoofing policy"),
    policy("manually blocked senders"),
    policy("envelope blocked"),
    policy("open relay not allowed"),
    block("dmarc sender invalid"),
    block("email rejected due to security policies"),
    block("host network not allowed"),
    soft("unable to process connection"),
];

/// Proofpoint.
const PROOFPOINT: &[Rule] = &[
    block("prs.proofpoint.com"),
    block("ipcheck.proofpoint.com"),
    block("proofpoint.com/dnsbl"),
    block("mta poor reputation"),
];

/// Barracuda.
const BARRACUDA: &[Rule] = &[
    block("one or more recipients * blocked)"),
    block("barracuda reputation"),
    policy("rejecting banned content"),
    policy("rejecting spoofed message"),
    soft("license expired"),
];

/// docomo and au: once the message was sent, the same words mean that the recipient filters it.
const JAPANESE: &[Rule] =
    &[policy("unknown user @ (in reply to end of data"), policy(": user unknown (in reply to end of data")];

/// Amazon SES.
const AMAZON: &[Rule] = &[policy("email address is not verified")];

/// Zoho.
const ZOHO: &[Rule] = &[policy("rejected by destination domain")];

/// Cisco, Symantec, Trend Micro and filters that run beside a server.
const GATEWAYS: &[Rule] = &[
    block("your access to this mail system has been rejected"),
    block("your access to submit messages"),
    block("message filtered. refer to the troubleshooting page"),
    block("ers-customized-block"),
    policy("block-send-er"),
    policy("block-rcpt"),
    policy("bad_header"),
    policy("- banned: "),
    soft("requested action aborted ["),
];

/// What this server says itself when there is no reply.
const OWN: &[Rule] = &[
    soft("no mail server of the domain answers"),
    soft("no mail server of the domain is one that"),
    soft("nobody knows whether the mail was taken"),
    soft("servers are not in the public internet"),
    soft("cannot be found out now"),
];
