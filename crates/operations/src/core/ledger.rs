//! A facilitator for test networks without a blockchain: it keeps balances in the store.

use std::{pin::Pin, sync::Arc};

use pay::{facilitator::Settlement, keccak256};
use store::{
    Db,
    payments::{self, Transfer},
};

use crate::core::ports::{Clock, Facilitator, SettleRequest, Verdict};

/// The ledger.
pub struct Ledger {
    db: Db,
    clock: Arc<dyn Clock>,
    gift: i64,
}

impl Ledger {
    /// A ledger that gives every new wallet this balance.
    pub fn new(db: Db, clock: Arc<dyn Clock>, gift: u64) -> Self {
        Self { db, clock, gift: i64::try_from(gift).unwrap_or(i64::MAX) }
    }

    async fn check(&self, request: &SettleRequest) -> Verdict {
        let payer = request.payment.authorization.from.to_lower();
        let (gift, amount) = (self.gift, amount(request));
        let balance = self.db.system_read(async move |tx| payments::balance(tx, &payer, gift).await).await;
        match balance {
            Ok(balance) if balance >= amount => Verdict::Good,
            Ok(_) => Verdict::Bad(INSUFFICIENT.to_owned()),
            Err(error) => Verdict::Unknown(store::Error::to_string(&error)),
        }
    }

    async fn transfer(&self, request: &SettleRequest) -> Settlement {
        let authorization = &request.payment.authorization;
        let (payer, nonce) = (authorization.from.to_lower(), authorization.nonce.to_hex());
        let reference = pay::Word(keccak256(format!("{} {payer} {nonce}", request.terms.network))).to_hex();
        let transfer = Transfer {
            payer,
            nonce,
            recipient: authorization.to.to_lower(),
            amount: amount(request),
            reference,
            now: self.clock.now(),
        };
        let gift = self.gift;
        let moved = self.db.system_write(async move |tx| payments::transfer(tx, &transfer, gift).await).await;
        match moved {
            Ok(Some(transaction)) => Settlement::Done { transaction },
            Ok(None) => Settlement::Refused { reason: INSUFFICIENT.to_owned() },
            Err(error) => Settlement::Pending { reason: store::Error::to_string(&error) },
        }
    }
}

const INSUFFICIENT: &str = "insufficient_funds";

fn amount(request: &SettleRequest) -> i64 {
    i64::try_from(request.terms.amount).unwrap_or(i64::MAX)
}

impl Facilitator for Ledger {
    fn verify<'a>(
        &'a self,
        request: &'a SettleRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(self.check(request))
    }
    fn settle<'a>(
        &'a self,
        request: &'a SettleRequest,
    ) -> Pin<Box<dyn Future<Output = Settlement> + Send + 'a>> {
        Box::pin(self.transfer(request))
    }
    fn is_ledger(&self) -> bool {
        true
    }
}
