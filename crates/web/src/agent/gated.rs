//! An endpoint behind the payment gate: its price, and its description for marketplaces.

use std::sync::OnceLock;

use pay::Terms;

use super::discovery::Bazaar;
use crate::{Endpoint, State};

/// An endpoint behind the payment gate.
pub(crate) struct GatedEndpoint {
    pub(crate) endpoint: Endpoint,
    /// Built for the first challenge.
    bazaar: OnceLock<Bazaar>,
    pub(crate) terms: Terms,
}

impl GatedEndpoint {
    pub(crate) fn new(state: &State, endpoint: Endpoint) -> Self {
        let settings = &state.app.settings().payments;
        let terms = settings.terms(settings.price(endpoint.operation));
        Self { bazaar: OnceLock::new(), endpoint, terms }
    }

    /// Its description for marketplaces.
    pub(crate) fn bazaar(&self) -> &Bazaar {
        self.bazaar.get_or_init(|| Bazaar::of(&self.endpoint))
    }
}
