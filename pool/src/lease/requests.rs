//! What else can be asked of a server: prompts, resources, completions. All of these only
//! read.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, GetPromptRequestParams, GetPromptResult,
    ReadResourceRequestParams, ReadResourceResult, Reference,
};
use steadfast_classify::{Class, Failure, Flight, Origin, Phase};
use tokio::time::{Instant, timeout};

use super::{Lease, span::Request};
use crate::{Link, entry::Use};

/// How long an answer may take where the configuration does not say.
const READ: Duration = Duration::from_secs(60);

// === impl Lease ===

impl Lease {
    /// Gets a prompt, filled in.
    ///
    /// # Errors
    ///
    /// `Rejected` if the session's filter keeps the prompt out, and as for any call. The
    /// server has the configured `timeout` to answer, else 60 s.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, the request is cancelled on the wire.
    pub async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
    ) -> Result<GetPromptResult, Failure> {
        let name = Some(params.name.clone());
        self.ask("prompts/get", name.as_deref(), |link, flight| {
            link.get_prompt(params, flight)
        })
        .await
    }

    /// Reads a resource.
    ///
    /// # Errors
    ///
    /// As for any call. The server has the configured `timeout` to answer, else 60 s.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, the request is cancelled on the wire.
    pub async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
    ) -> Result<ReadResourceResult, Failure> {
        self.ask("resources/read", None, |link, flight| {
            link.read_resource(params, flight)
        })
        .await
    }

    /// Completes an argument of a prompt or of a resource's template.
    ///
    /// # Errors
    ///
    /// `Rejected` if the session's filter keeps the prompt out, and as for any call. The
    /// server has the configured `timeout` to answer, else 60 s.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, the request is cancelled on the wire.
    pub async fn complete(&self, params: CompleteRequestParams) -> Result<CompleteResult, Failure> {
        let prompt = match &params.r#ref {
            Reference::Prompt(prompt) => Some(prompt.name.clone()),
            _ => None,
        };
        self.ask("completion/complete", prompt.as_deref(), |link, flight| {
            link.complete(params, flight)
        })
        .await
    }

    async fn ask<T>(
        &self,
        method: &'static str,
        prompt: Option<&str>,
        make: impl FnOnce(Arc<dyn Link>, Flight) -> BoxFuture<'static, Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let origin = Origin::server(Arc::clone(self.server())).with_operation(method);
        if let Some(failure) = self.refuse(prompt) {
            return Err(failure.with_origin(&origin));
        }
        let flight = Flight::new();
        // Claimed: if it is withdrawn, it was not sent.
        let _ = flight.queued();
        let limit = self.config().timeout().unwrap_or(READ);
        let work = async {
            let connection = self.checkout(&flight, Use::Other).await?;
            let sent = flight.clone();
            let begun = Instant::now();
            let answer = connection.call(&flight, |link| make(link, sent));
            let answered = timeout(limit, answer).await;
            answered.unwrap_or_else(|_| Err(timed_out(&flight, begun.elapsed())))
        };
        let request = Request::other(self, method, prompt, &flight);
        let work = self.unless_closed(&flight, work);
        let result = request.around(|_| None, work).await;
        result.map_err(|failure| failure.with_origin(&origin))
    }
}

fn timed_out(flight: &Flight, elapsed: Duration) -> Failure {
    let failure = if flight.withdraw() {
        Failure::new(Class::NotSent).with_phase(Phase::Connect)
    } else {
        Failure::new(Class::Timeout).with_phase(Phase::Read)
    };
    failure.with_elapsed(elapsed)
}
