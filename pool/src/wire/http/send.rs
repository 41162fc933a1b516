//! One message to the server, until somebody says what became of it.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{AUTHORIZATION, InvalidHeaderValue},
};
use reqwest::{Body, Request, Response, Url};
use rmcp::model::RequestId;
use secrecy::ExposeSecret;
use steadfast_classify::{Class, Failure};
use tokio::{sync::oneshot, task::yield_now};
use tracing::debug;

use super::{
    super::refused,
    answer::drain,
    body::{Gate, MessageBody},
    carrier::Carrier,
    credentials::{AuthorizeError, Token},
    failure::{not_sent, unanswered},
    redirect,
};

/// What is sent.
pub(super) struct Outbound {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) payload: Payload,
}

pub(super) enum Payload {
    Request(RequestId, Bytes),
    /// With whom to tell once it is begun.
    Notice(Bytes, Option<oneshot::Sender<Infallible>>),
    Nothing,
}

/// Why there is no response.
pub(super) enum SendError {
    Http(reqwest::Error),
    Unauthorized(AuthorizeError),
    Token(InvalidHeaderValue),
}

/// How often one message has been sent again.
#[derive(Default)]
struct Again {
    hops: usize,
    renewed: bool,
}

// === impl Carrier ===

impl Carrier {
    /// Sends a message, with a token that is good as far as anybody knows, and to where
    /// the server's own redirects send it. A response with another redirect, or with a 401
    /// that no newer token helps against, is returned like any other.
    pub(super) async fn send(&self, mut outbound: Outbound) -> Result<Response, SendError> {
        let mut url = self.target.url.clone();
        let mut token = self.token().await?;
        let mut again = Again::default();
        loop {
            let request = self.request(&url, token.as_ref(), &mut outbound)?;
            // Sockets are looked at meanwhile: a connection that the server has closed is
            // not to be taken for one that is only idle.
            yield_now().await;
            let sent = self.target.client.execute(request).await;
            let response = sent.map_err(SendError::Http)?;
            let (status, headers) = (response.status(), response.headers());
            if again.hops < redirect::MAX_HOPS
                && let Some(to) = redirect::next(&url, status, headers)
            {
                again.hops += 1;
                url = to;
            } else if status == StatusCode::UNAUTHORIZED
                && !again.renewed
                && let Some(refused) = token.clone()
            {
                again.renewed = true;
                let challenge = refused::challenge(headers);
                match self.renew(refused, challenge).await? {
                    Some(newer) => token = Some(newer),
                    None => return Ok(response),
                }
            } else {
                return Ok(response);
            }
            // Either status proves that it was not run.
            if let Payload::Request(id, _) = &outbound.payload {
                self.wire.refused(id);
            }
            drain(response).await;
        }
    }

    async fn token(&self) -> Result<Option<Token>, SendError> {
        match &self.target.credentials {
            Some(credentials) => {
                let token = credentials.current().await;
                token.map(Some).map_err(SendError::Unauthorized)
            }
            None => Ok(None),
        }
    }

    /// A token that is newer than a refused one, if there is any.
    async fn renew(
        &self,
        refused: Token,
        challenge: Option<String>,
    ) -> Result<Option<Token>, SendError> {
        let Some(credentials) = &self.target.credentials else {
            return Ok(None);
        };
        match credentials.renew(refused, challenge).await {
            Ok(token) => Ok(Some(token).filter(|token| token.secret.is_some())),
            Err(error @ AuthorizeError::Refused(_)) => {
                // The server's own 401 says what to do about it.
                debug!(%error, "no newer token");
                Ok(None)
            }
            Err(error) => Err(SendError::Unauthorized(error)),
        }
    }

    fn request(
        &self,
        url: &Url,
        token: Option<&Token>,
        outbound: &mut Outbound,
    ) -> Result<Request, SendError> {
        let mut request = Request::new(outbound.method.clone(), url.clone());
        let headers = request.headers_mut();
        headers.extend(self.target.headers.clone());
        headers.extend(outbound.headers.clone());
        if let Some(secret) = token.and_then(|token| token.secret.as_ref()) {
            let bearer = format!("Bearer {}", secret.expose_secret());
            let mut bearer = HeaderValue::try_from(bearer).map_err(SendError::Token)?;
            bearer.set_sensitive(true);
            headers.insert(AUTHORIZATION, bearer);
        }
        *request.body_mut() = match &mut outbound.payload {
            Payload::Request(id, bytes) => {
                let gate = Gate::Request(Arc::clone(&self.wire), id.clone());
                Some(Body::wrap(MessageBody::new(bytes.clone(), gate)))
            }
            Payload::Notice(bytes, begun) => {
                let gate = Gate::Notice(begun.take());
                Some(Body::wrap(MessageBody::new(bytes.clone(), gate)))
            }
            Payload::Nothing => None,
        };
        Ok(request)
    }
}

// === impl SendError ===

impl SendError {
    /// What it means for a request, given whether that was `begun` to be sent.
    pub(super) fn judge(self, begun: bool) -> Failure {
        match self {
            Self::Http(error) => unanswered(error, begun),
            Self::Unauthorized(error @ AuthorizeError::Refused(_)) => Failure::new(Class::Answered)
                .with_may_have_run(false)
                .with_source(error),
            Self::Unauthorized(error) => not_sent(error),
            Self::Token(error) => not_sent(error).with_permanent(),
        }
    }
}
