//! What stands beside a message: its delivery or scan status, whether its sender is verified, what is dangerous about it.

use model::emails::{Email, ScanStatus, Verdict};

/// A badge of a message: its kind, its text, and its tooltip.
pub(super) type Badge = (&'static str, String, String);

/// The badges of a message.
pub(super) fn badges(mail: &Email) -> Vec<Badge> {
    let mut badges: Vec<Badge> = Vec::new();
    if let Some(status) = mail.delivery_status.as_deref() {
        let kind = match status {
            "delivered" | "sent" => "ok",
            "queued" => "info",
            "sandboxed" => "warn",
            _ => "bad",
        };
        badges.push((kind, capital(status), "Delivery status".to_owned()));
        return badges;
    }
    // Written here, so there is no sender to verify and nothing to scan.
    if matches!(mail.folder_id.as_str(), "draft" | "scheduled" | "review" | "sent") {
        return badges;
    }
    badges.push(match mail.scan_status {
        Some(ScanStatus::Clean) => {
            ("ok", "Scanned, clean".to_owned(), "Every scanner passed this message.".to_owned())
        }
        Some(ScanStatus::Flagged) => {
            ("bad", "Dangerous".to_owned(), "A scanner found this message unsafe.".to_owned())
        }
        Some(ScanStatus::Skipped) => (
            "warn",
            "Not scanned".to_owned(),
            "This message could not be scanned, so it is not known to be clean.".to_owned(),
        ),
        None => (
            "info",
            "Scanning".to_owned(),
            "The scan is not finished, so this message is not known to be clean.".to_owned(),
        ),
    });
    let checks = &mail.sender_authentication;
    let said = format!("SPF {}, DKIM {}, DMARC {}", checks.spf, checks.dkim, checks.dmarc);
    badges.push(match checks.status {
        Verdict::Pass => ("ok", "Sender verified".to_owned(), said),
        Verdict::Fail => ("bad", "Sender check failed".to_owned(), said),
        Verdict::Unknown => ("", "Sender not verified".to_owned(), said),
    });
    if mail.is_urgent {
        badges.push(("warn", "Urgent".to_owned(), "Triage classified this message as urgent.".to_owned()));
    }
    let category = mail.category.as_str();
    if category != "other" {
        badges.push(("", capital(&category.replace('_', " ")), "Category".to_owned()));
    }
    badges
}

/// A text with a capital letter.
pub(super) fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// What is dangerous about a message.
pub(super) fn threats(mail: &Email) -> Vec<String> {
    let found = mail.scan_threats.as_deref().unwrap_or_default();
    found
        .iter()
        .map(|threat| {
            let place = match &threat.url {
                Some(url) => url.clone(),
                None => threat.attachment_filename.clone(),
            };
            format!("{}: {place}", capital(&threat.threat_type.replace('_', " ")))
        })
        .collect()
}
