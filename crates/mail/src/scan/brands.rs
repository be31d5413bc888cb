//! Brands that phishing links imitate most, and hosts that wrap other senders' links.

/// Well-known names, as the label before the public suffix. Only names that no ordinary word comes close to.
pub(super) const BRANDS: [&str; 64] = [
    "adobe",
    "airbnb",
    "alibaba",
    "aliexpress",
    "amazon",
    "americanexpress",
    "apple",
    "bankofamerica",
    "barclays",
    "binance",
    "bitpay",
    "booking",
    "capitalone",
    "chase",
    "citibank",
    "coinbase",
    "commerzbank",
    "deutschebank",
    "discord",
    "docusign",
    "dropbox",
    "ebay",
    "facebook",
    "fedex",
    "github",
    "gitlab",
    "gmail",
    "godaddy",
    "google",
    "hotmail",
    "hsbc",
    "icloud",
    "instagram",
    "kraken",
    "linkedin",
    "mastercard",
    "metamask",
    "microsoft",
    "microsoftonline",
    "netflix",
    "office365",
    "onedrive",
    "outlook",
    "paypal",
    "postbank",
    "postfinance",
    "revolut",
    "roblox",
    "salesforce",
    "santander",
    "shopify",
    "skype",
    "snapchat",
    "sparkasse",
    "spotify",
    "steamcommunity",
    "stripe",
    "telegram",
    "tiktok",
    "twitter",
    "walmart",
    "wellsfargo",
    "whatsapp",
    "youtube",
];

/// Hosts of link protection services.
const PROTECTORS: [&str; 10] = [
    "linkprotect.cudasvc.com",
    "mimecast.com",
    "mimecastprotect.com",
    "safelinks.protection.outlook.com",
    "secure-web.cisco.com",
    "trendmicro.com",
    "urldefense.com",
    "urldefense.proofpoint.com",
    "urlsand.esvalabs.com",
    "www.google.com",
];

/// Redirecting hosts: click trackers of mailers and redirectors of social networks.
const TRACKERS: [&str; 39] = [
    "acemlnb.com",
    "awstrack.me",
    "campaign-archive.com",
    "cmail19.com",
    "cmail20.com",
    "constantcontact.com",
    "createsend1.com",
    "customeriomail.com",
    "doubleclick.net",
    "emltrk.com",
    "exacttarget.com",
    "getresponse.com",
    "hs-sites.com",
    "hubspot.com",
    "hubspotlinks.com",
    "klaviyomail.com",
    "klclick.com",
    "l.facebook.com",
    "list-manage.com",
    "lm.facebook.com",
    "lnkd.in",
    "mailchi.mp",
    "mailgun.org",
    "mailjet.com",
    "mandrillapp.com",
    "mjt.lu",
    "mlsend.com",
    "rs6.net",
    "sailthru.com",
    "sendgrid.net",
    "sendinblue.com",
    "sendibm1.com",
    "sibforms.com",
    "slack-redir.net",
    "sparkpostmail.com",
    "substack.com",
    "t.co",
    "tinyletter.com",
    "www.linkedin.com",
];

/// First labels of click-tracking hosts.
const TRACKING_LABELS: [&str; 29] = [
    "c",
    "click",
    "clicks",
    "ct",
    "e",
    "elink",
    "email",
    "em",
    "go",
    "l",
    "link",
    "links",
    "lnk",
    "m",
    "mail",
    "mailing",
    "mkt",
    "news",
    "newsletter",
    "r",
    "redirect",
    "t",
    "tr",
    "track",
    "tracking",
    "trk",
    "u",
    "url",
    "visit",
];

/// Whether a label is a well-known name.
pub(super) fn is_brand(label: &str) -> bool {
    BRANDS.contains(&label)
}

/// Whether a host belongs to a link protection service.
pub(super) fn is_protector(host: &str) -> bool {
    PROTECTORS.iter().any(|known| is_below(host, known))
}

/// Whether a host is a known click tracker.
pub(super) fn is_tracker(host: &str) -> bool {
    TRACKERS.iter().any(|known| is_below(host, known))
}

fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether a host looks like a click tracker, such as `click.mailer.com` or `url1234.example.com`.
pub(super) fn counts_clicks(host: &str) -> bool {
    let first = host.split('.').next().unwrap_or_default();
    let word = first.trim_end_matches(|c: char| c.is_ascii_digit());
    host.split('.').count() > 2 && TRACKING_LABELS.contains(&word)
}
