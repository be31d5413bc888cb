//! Evidence about a message before its From line is considered: the domains that SPF and DKIM vouch for.
//!
//! DMARC checks it against the policy of the author's domain; without a policy, it is used directly.

use super::dkim::Signatures;
use super::spf::Outcome;
use super::verdict::Verdict;

/// The results of SPF and DKIM, before alignment with the From line.
pub(super) struct Evidence<'a> {
    pub(super) spf: Outcome,
    pub(super) spf_domain: Option<&'a str>,
    pub(super) signatures: Signatures,
}

impl Evidence<'_> {
    /// The identities that vouch for the message, with the verdict on each.
    pub(super) fn identities(&self) -> impl Iterator<Item = (Identity, &str, Verdict)> {
        let envelope = self.spf_domain.map(|domain| (Identity::Spf, domain, self.spf.verdict()));
        let signed = self.signatures.checked.iter();
        envelope
            .into_iter()
            .chain(signed.map(|(domain, verdict)| (Identity::Dkim, domain.as_str(), *verdict)))
    }

    /// Without a policy nothing says which other domains belong to the author's, so only the same domain counts.
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

/// How a domain vouches for a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Identity {
    Spf,
    Dkim,
}
