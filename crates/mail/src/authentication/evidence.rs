//! What was found out about a mail before its From line is looked at: the domains that SPF and the signatures speak for.
//!
//! DMARC holds it against the policy of the author's domain; where there is no policy, it speaks for itself.

use super::dkim::Signatures;
use super::spf::Outcome;
use super::verdict::Verdict;

/// What SPF and the signatures say, before it is held against the From line.
pub(super) struct Evidence<'a> {
    pub(super) spf: Outcome,
    pub(super) spf_domain: Option<&'a str>,
    pub(super) signatures: Signatures,
}

impl Evidence<'_> {
    /// The identities that speak for the mail, with what was found about each.
    pub(super) fn identities(&self) -> impl Iterator<Item = (Identity, &str, Verdict)> {
        let envelope = self.spf_domain.map(|domain| (Identity::Spf, domain, self.spf.verdict()));
        let signed = self.signatures.checked.iter();
        envelope
            .into_iter()
            .chain(signed.map(|(domain, verdict)| (Identity::Dkim, domain.as_str(), *verdict)))
    }

    /// Without a policy nobody says which other domains belong to the author's, so only the same domain counts.
    pub(super) fn status_without_policy(&self, author_domain: &str) -> Verdict {
        let proven =
            self.identities().any(|(_, domain, verdict)| domain == author_domain && verdict == Verdict::Pass);
        let open = !self.signatures.complete
            || self
                .identities()
                .any(|(_, domain, verdict)| domain == author_domain && verdict == Verdict::Unknown);
        let disproven = self.spf_domain == Some(author_domain) && self.spf == Outcome::Fail && !open;
        match (proven, disproven) {
            (true, _) => Verdict::Pass,
            (false, true) => Verdict::Fail,
            (false, false) => Verdict::Unknown,
        }
    }
}

/// How a domain speaks for a mail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Identity {
    Spf,
    Dkim,
}
