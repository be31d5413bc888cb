//! An endpoint behind the gate: what it costs, and how catalogues describe it.

use std::sync::OnceLock;

use pay::Terms;

use super::discovery::Bazaar;
use crate::{Endpoint, State};

/// An endpoint behind the gate.
pub(crate) struct Gated {
    pub(crate) endpoint: Endpoint,
    /// Made for the first who is asked to pay.
    bazaar: OnceLock<Bazaar>,
    pub(crate) terms: Terms,
}

impl Gated {
    pub(crate) fn new(state: &State, endpoint: Endpoint) -> Self {
        let settings = &state.app.settings().payments;
        let terms = settings.terms(settings.price(endpoint.operation));
        Self { bazaar: OnceLock::new(), endpoint, terms }
    }

    /// How it is called, for catalogues of what can be paid for.
    pub(crate) fn bazaar(&self) -> &Bazaar {
        self.bazaar.get_or_init(|| Bazaar::of(&self.endpoint))
    }
}
