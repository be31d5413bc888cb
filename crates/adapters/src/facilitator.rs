//! An HTTP client of a facilitator, as configured by the operator.

use std::{future::Future, pin::Pin, time::Duration};

use operations::ports::{Facilitator, SettleRequest, Verdict};
use pay::facilitator::{self, Settlement};
use reqwest::{Method, header::HeaderMap};
use url::Url;

use crate::http::{LazyClient, read_body, without_address};

/// Maximum bytes of a response; a longer one is an error.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// A client of one facilitator.
pub struct HttpFacilitator {
    base: Url,
    headers: HeaderMap,
    time_limit: Duration,
    client: LazyClient,
}

impl HttpFacilitator {
    /// A client that sends these headers with every request, with this timeout.
    pub fn new(base: Url, headers: HeaderMap, time_limit: Duration) -> Self {
        Self { base, headers, time_limit, client: LazyClient::default() }
    }

    /// Checks that the facilitator settles payments on a network.
    pub async fn check_support(&self, network: &str) -> Result<(), String> {
        let body = self.call(Method::GET, "supported", None).await?;
        if facilitator::supports(&body, network) {
            return Ok(());
        }
        Err(format!("it does not list version 2 of the scheme exact on {network}"))
    }

    /// The body of a response, whatever its status: facilitators explain errors in bodies too.
    async fn call(&self, method: Method, what: &str, body: Option<Vec<u8>>) -> Result<Vec<u8>, String> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{what}", self.base.path().trim_end_matches('/')));
        let exchange = async {
            let mut call =
                self.client.get(|builder| builder).await?.request(method, url).headers(self.headers.clone());
            if let Some(body) = body {
                call = call.header("content-type", "application/json").body(body);
            }
            let answer = call.send().await.map_err(without_address)?;
            read_body(answer, MAX_ANSWER_BYTES).await
        };
        let within = tokio::time::timeout(self.time_limit, exchange).await;
        within.unwrap_or_else(|_| Err(format!("no answer within {} seconds", self.time_limit.as_secs())))
    }

    async fn ask(&self, what: &str, request: &SettleRequest) -> Result<Vec<u8>, String> {
        let body = facilitator::request(&request.terms, &request.resource, &request.payment);
        self.call(Method::POST, what, Some(body.to_string().into_bytes())).await
    }

    async fn settle_once(&self, request: &SettleRequest) -> Settlement {
        let payer = request.payment.authorization.from;
        match self.ask("settle", request).await {
            Ok(body) => facilitator::read_settle(&body, &request.terms, payer),
            Err(reason) => {
                tracing::warn!(error = %reason, "settlement outcome unknown; reconciling");
                Settlement::Pending { reason: "no_answer_of_the_facilitator".to_owned() }
            }
        }
    }
}

impl Facilitator for HttpFacilitator {
    fn verify<'a>(
        &'a self,
        request: &'a SettleRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async move {
            let body = match self.ask("verify", request).await {
                Ok(body) => body,
                Err(reason) => return Verdict::Unknown(reason),
            };
            match facilitator::read_verify(&body, request.payment.authorization.from) {
                Some(Ok(())) => Verdict::Good,
                Some(Err(reason)) => Verdict::Bad(reason),
                None => Verdict::Unknown("its answer cannot be read".to_owned()),
            }
        })
    }

    fn settle<'a>(
        &'a self,
        request: &'a SettleRequest,
    ) -> Pin<Box<dyn Future<Output = Settlement> + Send + 'a>> {
        Box::pin(async move {
            let first = self.settle_once(request).await;
            match &first {
                // The settlement is in progress: a second request often finds it done, and cannot settle twice.
                Settlement::Pending { reason } if reason == "settlement_pending" => {
                    self.settle_once(request).await
                }
                _ => first,
            }
        })
    }
}
