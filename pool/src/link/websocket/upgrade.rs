//! From bytes to a WebSocket: the upgrade, and what it may be refused by.

use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, Uri,
    header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL},
};
use rmcp::model::RequestId;
use secrecy::ExposeSecret;
use steadfast_classify::Failure;
use tokio_tungstenite::{
    client_async_with_config,
    tungstenite::{Error, client::IntoClientRequest as _, protocol::WebSocketConfig},
};
use url::Url;

use super::failure::{not_upgraded, unusable};
use crate::{
    Remote,
    link::refusal::refused,
    wire::{
        Hush, Login, Refusal,
        websocket::{Bytes, MAX_MESSAGE, Socket},
    },
};

const SUBPROTOCOL: HeaderValue = HeaderValue::from_static("mcp");

/// How much may wait to be sent, a message of ours included: a server that pings and does not
/// read would have its answers kept without end.
const MAX_UNSENT: usize = 64 * 1024 * 1024;

/// The request that asks for a WebSocket.
pub(super) struct Upgrade {
    url: Url,
    request: Request<()>,
    hush: Hush,
}

/// Why no request can be made of a configuration. None of these holds a value.
#[derive(Debug, thiserror::Error)]
enum Invalid {
    #[error("the address is not valid: {0}")]
    Url(#[from] url::ParseError),
    #[error("the address is not valid")]
    Uri,
    #[error("the address has no host")]
    NoHost,
    #[error("the header {0:?} is not valid")]
    Header(String),
    #[error("the address holds a login, and the headers have an `authorization` too")]
    TwoLogins,
}

// === impl Upgrade ===

impl Upgrade {
    pub(super) fn new(remote: &Remote) -> Result<Self, Failure> {
        Self::build(remote).map_err(unusable)
    }

    fn build(remote: &Remote) -> Result<Self, Invalid> {
        let mut url = Url::parse(remote.url.expose_secret())?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err(Invalid::NoHost);
        }
        url.set_fragment(None);
        let mut headers = headers(remote)?;
        if let Some(login) = Login::take(&mut url) {
            if headers.contains_key(AUTHORIZATION) {
                return Err(Invalid::TwoLogins);
            }
            headers.insert(AUTHORIZATION, login.into_header());
        }
        let hush = Hush::of(&url, &headers);
        headers.insert(SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL);
        // None of these errors says more, and their text may hold the address.
        let uri: Uri = url.as_str().parse().map_err(|_| Invalid::Uri)?;
        let mut request = uri.into_client_request().map_err(|_| Invalid::Uri)?;
        request.headers_mut().extend(headers);
        Ok(Self { url, request, hush })
    }

    pub(super) fn is_secure(&self) -> bool {
        self.url.scheme() == "wss"
    }

    /// The host, an address of the sixth version without its brackets, and the port.
    pub(super) fn place(&self) -> (&str, u16) {
        let host = self.url.host_str().unwrap_or_default();
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let port = self.url.port_or_known_default().unwrap_or_default();
        (bare.unwrap_or(host), port)
    }

    /// Asks for a WebSocket over `stream`.
    pub(super) async fn perform(self, stream: Box<dyn Bytes>) -> Result<Socket, Failure> {
        let upgraded = client_async_with_config(self.request, stream, Some(limits())).await;
        match upgraded {
            Ok((socket, _response)) => Ok(socket),
            Err(Error::Http(response)) => Err(judge(*response, self.hush)),
            Err(error) => Err(not_upgraded(error)),
        }
    }
}

/// What is held of one connection at most.
fn limits() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE))
        .max_write_buffer_size(MAX_UNSENT)
}

/// The configuration's headers.
fn headers(remote: &Remote) -> Result<HeaderMap, Invalid> {
    let mut headers = HeaderMap::new();
    for (name, value) in &remote.headers {
        let invalid = || Invalid::Header(name.clone());
        let parsed = HeaderName::try_from(name).map_err(|_| invalid())?;
        let mut value = HeaderValue::try_from(value.expose_secret()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(headers)
}

/// What an HTTP response other than the upgrade means.
fn judge(response: Response<Option<Vec<u8>>>, hush: Hush) -> Failure {
    let (parts, body) = response.into_parts();
    let succeeded = parts.status.is_success();
    let refusal = Refusal {
        status: parts.status,
        headers: parts.headers,
        body: body.unwrap_or_default(),
        hush,
    };
    // It answers no request, so there is no id that it could name.
    let failure = refused(refusal.judge(&RequestId::String("".into())));
    if succeeded {
        // Something is there, and it is no WebSocket.
        failure.with_permanent()
    } else {
        failure
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::{SinkExt as _, StreamExt as _};
    use tokio::{
        io::{AsyncWriteExt as _, duplex},
        time::timeout,
    };
    use tokio_tungstenite::{
        WebSocketStream,
        tungstenite::{Message, protocol::Role},
    };

    use super::*;

    #[tokio::test]
    async fn answers_to_pings_that_are_not_read_are_bounded() {
        let (ours, mut theirs) = duplex(64 * 1024);
        let config = Some(limits());
        let mut socket = WebSocketStream::from_raw_socket(ours, Role::Client, config).await;
        let ping = [&[0x89, 125][..], &[b'x'; 125]].concat();
        // An answer is longer than its ping, by the mask.
        let pings = MAX_UNSENT / ping.len();
        let flood = async {
            for _ in 0..pings / 256 {
                theirs.write_all(&ping.repeat(256)).await.unwrap();
            }
            theirs
        };
        let read = async { while let Some(Ok(Message::Ping(_))) = socket.next().await {} };

        let theirs = tokio::select! {
            () = read => panic!("it goes on reading"),
            theirs = flood => theirs,
        };
        let sent = socket.send(Message::text("x".repeat(128 * 1024)));
        let sent = timeout(Duration::from_secs(3), sent).await;
        let sent = sent.expect("there is no end to what waits");

        assert!(matches!(sent, Err(Error::WriteBufferFull(_))), "{sent:?}");
        drop(theirs);
    }
}
