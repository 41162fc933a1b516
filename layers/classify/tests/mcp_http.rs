//! What the errors of `rmcp`'s own HTTP transport mean, one by one.
#![cfg(feature = "rmcp-http")]
#![allow(clippy::unwrap_used, reason = "test helpers")]

use std::{any::TypeId, borrow::Cow, error::Error as _, io, time::Duration};

use rmcp::{
    ErrorData,
    model::ErrorCode,
    service::{ClientInitializeError, ServiceError},
    transport::{
        DynamicTransportError,
        streamable_http_client::{
            AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError,
        },
    },
};
use steadfast_classify::{
    Class, Failure, Phase,
    mcp::{Delivery, http_failure, initialize_failure, service_failure},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

type HttpError = StreamableHttpError<reqwest::Error>;

fn sent(error: HttpError) -> DynamicTransportError {
    DynamicTransportError::from_parts("test", TypeId::of::<()>(), Box::new(error))
}

fn in_a_call(error: HttpError) -> Failure {
    service_failure(ServiceError::TransportSend(sent(error)), Delivery::Handed)
}

fn in_the_handshake(error: HttpError) -> Failure {
    initialize_failure(ClientInitializeError::TransportError {
        error: sent(error),
        context: "send initialize request".into(),
    })
}

fn status(status: u16, retry_after: Option<&str>) -> HttpError {
    HttpStatusError::new(status, retry_after.map(str::to_owned)).into()
}

fn told(text: &'static str) -> HttpError {
    StreamableHttpError::UnexpectedServerResponse(Cow::Borrowed(text))
}

fn unreadable() -> serde_json::Error {
    serde_json::from_str::<u8>("<html>").unwrap_err()
}

fn challenge() -> String {
    "Bearer realm=\"shop\"".to_owned()
}

/// The rows: what `rmcp` reports, its class, and whether the call may have run.
fn rows() -> Vec<(HttpError, Class, bool)> {
    use Class::{Answered, NotSent, Overloaded, Unknown};
    let scope = InsufficientScopeError::new(challenge(), None);
    vec![
        (status(429, Some("7")), Overloaded, false),
        (status(503, Some("7")), Unknown, true),
        (status(500, None), Unknown, true),
        (status(502, None), Unknown, true),
        (status(504, None), Unknown, true),
        (status(415, None), Answered, false),
        (status(409, None), Answered, true),
        (
            StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge())),
            Answered,
            false,
        ),
        (
            StreamableHttpError::InsufficientScope(scope),
            Answered,
            false,
        ),
        (told("HTTP 401 Unauthorized: "), Answered, false),
        (
            told("HTTP 400 Bad Request: {\"secret\":1}"),
            Answered,
            false,
        ),
        (told("HTTP 404 Not Found: gone"), Answered, false),
        (told("HTTP 301 Moved: "), Answered, false),
        (told("HTTP 303 See Other: "), Answered, true),
        (told("could not parse JSON response"), Unknown, true),
        (
            StreamableHttpError::UnexpectedContentType(Some("text/html".into())),
            Unknown,
            true,
        ),
        (
            StreamableHttpError::Deserialize(unreadable()),
            Unknown,
            true,
        ),
        (StreamableHttpError::UnexpectedEndOfStream, Unknown, true),
        (
            StreamableHttpError::Io(io::ErrorKind::ConnectionReset.into()),
            Unknown,
            true,
        ),
        (
            StreamableHttpError::ResponseBodyTooLarge { max_size: 1 },
            Answered,
            true,
        ),
        (StreamableHttpError::SessionExpired, NotSent, false),
        (
            StreamableHttpError::ReinitializationFailed(ErrorData::new(
                ErrorCode::INTERNAL_ERROR,
                "no",
                None,
            )),
            NotSent,
            false,
        ),
        (StreamableHttpError::SessionRecoveryTimeout, Unknown, true),
        (StreamableHttpError::TransportChannelClosed, Unknown, true),
        (StreamableHttpError::ControlRequestTimeout, Unknown, true),
        (
            StreamableHttpError::ReservedHeaderConflict("accept".into()),
            NotSent,
            false,
        ),
    ]
}

#[test]
fn each_error_of_a_call_is_a_class() {
    for (error, class, may_have_run) in rows() {
        let text = error.to_string();
        let permanent = matches!(error, StreamableHttpError::ReservedHeaderConflict(_));

        let failure = in_a_call(error);

        assert_eq!(failure.class(), class, "{text}");
        assert_eq!(failure.may_have_run(), may_have_run, "{text}");
        assert_eq!(failure.is_permanent(), permanent, "{text}");
        assert!(failure.source().is_some(), "{text}");
    }
}

#[test]
fn nothing_about_a_handshake_is_unknown() {
    for (error, class, _) in rows() {
        let text = error.to_string();
        let want = match class {
            Class::Unknown => Class::NotSent,
            class => class,
        };

        let failure = in_the_handshake(error);

        assert_eq!(failure.class(), want, "{text}");
    }
}

#[test]
fn the_servers_word_on_when_to_come_back_is_kept() {
    let date = "Fri, 31 Dec 1999 23:59:59 GMT";
    for (error, want) in [
        (status(429, Some("7")), Some(Duration::from_secs(7))),
        (status(503, Some("7")), Some(Duration::from_secs(7))),
        (status(429, Some(date)), Some(Duration::ZERO)),
        (status(429, Some("soon")), None),
        (status(429, None), None),
    ] {
        assert_eq!(in_a_call(error).retry_after(), want);
    }
}

#[test]
fn a_challenge_can_be_found_and_a_body_is_not_printed() {
    let refused = in_a_call(StreamableHttpError::AuthRequired(AuthRequiredError::new(
        challenge(),
    )));
    let found = refused.find_source::<AuthRequiredError>().unwrap();
    assert_eq!(found.www_authenticate_header, challenge());

    for text in [
        "HTTP 400 Bad Request: hunter2",
        "could not parse JSON response: hunter2",
    ] {
        let failure = in_a_call(told(text));
        let printed = format!("{failure} {failure:?}");
        assert!(!printed.contains("hunter2"), "{printed}");
    }
}

#[test]
fn an_error_of_another_client_is_judged_by_its_owner() {
    let refused = || StreamableHttpError::Client(io::Error::from(io::ErrorKind::ConnectionRefused));
    let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;

    assert_eq!(http_failure(refused(), is_refused).class(), Class::NotSent);
    assert_eq!(http_failure(refused(), |_| false).class(), Class::Unknown);
}

/// Asks a server that `answers` so and closes.
async fn ask(answers: &'static [u8]) -> HttpError {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 1024];
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0);
        stream.write_all(answers).await.unwrap();
    });
    let url = format!("http://{address}/mcp?token=hunter2");
    let sent = reqwest::Client::new().post(url).body("{}").send().await;
    let failed = match sent {
        Ok(response) => response.bytes().await.unwrap_err(),
        Err(error) => error,
    };
    server.await.unwrap();
    StreamableHttpError::Client(failed)
}

#[tokio::test]
async fn only_a_request_that_found_no_connection_was_surely_not_sent() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let url = format!("http://{address}/mcp?token=hunter2");
    let refused = reqwest::Client::new().post(url).send().await.unwrap_err();
    let refused = in_a_call(StreamableHttpError::Client(refused));
    assert_eq!(refused.class(), Class::NotSent, "{refused}");
    assert_eq!(refused.phase(), Some(Phase::Connect));

    let closed = in_a_call(ask(b"").await);
    let half_a_head = in_a_call(ask(b"HTTP/1.1 200 O").await);
    let half_a_body = in_a_call(ask(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"json").await);
    for failure in [&closed, &half_a_head, &half_a_body] {
        assert_eq!(failure.class(), Class::Unknown, "{failure}");
    }
    for failure in [refused, closed, half_a_head, half_a_body] {
        let mut printed = format!("{failure} {failure:?}");
        let mut source = failure.source();
        while let Some(error) = source {
            printed.push_str(&format!(" {error} {error:?}"));
            source = error.source();
        }
        assert!(!printed.contains("hunter2"), "{printed}");
    }
}
