//! What the errors and results of `rmcp` mean.
#![cfg(feature = "rmcp")]
#![allow(clippy::unwrap_used, reason = "test helpers")]

use std::{any::TypeId, error::Error as _, io, time::Duration};

use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, CustomResult, ErrorCode, ServerResult},
    service::{ClientInitializeError, ServiceError},
    transport::DynamicTransportError,
};
use serde_json::{Value, json};
use steadfast_classify::{
    Cause, Class, Failure, Phase, Source, Tag,
    mcp::{
        Delivery, SOURCE_META_KEY, ServerError, initialize_failure, server_failure, service_failure,
    },
};

fn error(code: i32, message: &'static str) -> ErrorData {
    ErrorData::new(
        ErrorCode(code),
        message,
        Some(json!({"argument": "hunter2"})),
    )
}

fn send(error: impl std::error::Error + Send + Sync + 'static) -> ServiceError {
    let id = TypeId::of::<()>();
    ServiceError::TransportSend(DynamicTransportError::from_parts(
        "test",
        id,
        Box::new(error),
    ))
}

#[test]
fn an_error_of_a_running_connection_is_a_class() {
    use Delivery::{Handed, NotHanded};
    let timeout = ServiceError::Timeout {
        timeout: Duration::from_secs(1),
    };
    let cancelled = ServiceError::Cancelled { reason: None };
    let rounds = ServiceError::InputRequiredRoundsExceeded { max_rounds: 10 };
    for (error, delivery, want) in [
        (ServiceError::TransportClosed, NotHanded, Class::NotSent),
        (ServiceError::TransportClosed, Handed, Class::Unknown),
        (
            send(io::Error::from(io::ErrorKind::BrokenPipe)),
            Handed,
            Class::NotSent,
        ),
        (
            send(io::Error::from(io::ErrorKind::NotConnected)),
            Handed,
            Class::NotSent,
        ),
        (
            send(io::Error::from(io::ErrorKind::ConnectionReset)),
            Handed,
            Class::Unknown,
        ),
        (send(std::fmt::Error), Handed, Class::Unknown),
        (ServiceError::UnexpectedResponse, Handed, Class::Unknown),
        (timeout, Handed, Class::Timeout),
        (cancelled, Handed, Class::Unknown),
        (rounds, Handed, Class::Answered),
    ] {
        let text = format!("{error} {delivery:?}");
        let failure = service_failure(error, delivery);
        assert_eq!(failure.class(), want, "{text}");
        assert_eq!(failure.may_have_run(), want != Class::NotSent, "{text}");
    }
}

#[test]
fn an_error_answer_is_answered_and_says_whether_it_ran() {
    for (code, may_have_run) in [
        (-32700, false),
        (-32600, false),
        (-32601, false),
        (-32602, false),
        (-32020, false),
        (-32021, false),
        (-32022, false),
        // Raised by the handler, which may have done something before.
        (-32002, true),
        (-32603, true),
        // No meaning by the specification: neither a timeout nor a closed connection.
        (-32000, true),
        (-32001, true),
        (42, true),
    ] {
        let failure = server_failure(error(code, "no"), &[]);
        assert_eq!(failure.class(), Class::Answered, "{code}");
        assert_eq!(failure.may_have_run(), may_have_run, "{code}");
    }
}

#[test]
fn only_a_code_the_user_lists_means_overloaded() {
    assert_eq!(
        server_failure(error(-32050, "busy"), &[]).class(),
        Class::Answered
    );
    assert_eq!(
        server_failure(error(-32050, "busy"), &[-32050]).class(),
        Class::Overloaded
    );
}

#[test]
fn an_answer_made_up_by_rmcp_proves_nothing() {
    let made_up = "streamable HTTP session was re-initialized before the response arrived";
    assert_eq!(
        server_failure(error(-32603, made_up), &[]).class(),
        Class::Unknown
    );
}

#[test]
fn the_servers_words_are_kept_and_its_data_is_not_printed() {
    let failure = server_failure(error(-32602, "`amount` is missing"), &[]);

    let printed = format!("{failure} {failure:?}");

    assert!(printed.contains("`amount` is missing"), "{printed}");
    assert!(!printed.contains("hunter2"), "{printed}");
    let server = failure.find_source::<ServerError>().unwrap();
    assert_eq!(server.code(), -32602);
    assert!(server.data().data.is_some());
}

#[test]
fn a_failed_handshake_was_not_sent_and_some_are_permanent() {
    let json_rpc = |code| ClientInitializeError::JsonRpcError(error(code, "no"));
    let result = |value| {
        let result = ServerResult::CustomResult(CustomResult::new(value));
        ClientInitializeError::ExpectedInitResult(Some(result))
    };
    for (error, permanent) in [
        (
            ClientInitializeError::ConnectionClosed("initialize".into()),
            false,
        ),
        (ClientInitializeError::Cancelled, false),
        (ClientInitializeError::ExpectedInitResponse(None), false),
        (result(json!({"serverInfo": {}})), true),
        (result(json!({"protocolVersion": "2025-11-25"})), false),
        (json_rpc(-32603), false),
        (json_rpc(-32601), true),
        (json_rpc(-32602), true),
        (json_rpc(-32022), true),
        (ClientInitializeError::NoPreferredProtocolVersion, true),
        (
            ClientInitializeError::NoCompatibleProtocolVersion {
                client_supported: Vec::new(),
                server_supported: Vec::new(),
            },
            true,
        ),
    ] {
        let text = error.to_string();
        let failure = initialize_failure(error);
        assert_eq!(failure.class(), Class::NotSent, "{text}");
        assert_eq!(failure.phase(), Some(Phase::Connect), "{text}");
        assert_eq!(failure.is_permanent(), permanent, "{text}");
        assert!(failure.source().is_some(), "{text}");
    }
}

fn cause() -> Cause {
    let failure = Failure::new(Class::Timeout)
        .with_phase(Phase::Read)
        .with_retry_in(Duration::from_millis(1500));
    Cause::from(&failure)
}

fn tag_of(result: &CallToolResult) -> &Value {
    &result.meta.as_ref().unwrap().0[SOURCE_META_KEY]
}

#[test]
fn a_result_says_where_it_came_from() {
    let mut result = CallToolResult::success(vec![ContentBlock::text("old")]);

    result.tag(&Source::Live, None);
    assert_eq!(*tag_of(&result), json!({"source": "live"}));

    let age = Duration::from_secs(5);
    result.tag(&Source::Cache { age }, Some(&cause()));
    let tag = tag_of(&result);
    assert_eq!(tag["source"], "cache");
    assert_eq!(tag["age_ms"], 5000);
    assert_eq!(tag["cause"]["class"], "timeout");
    assert_eq!(tag["cause"]["phase"], "read");
    assert_eq!(tag["cause"]["retry_after_ms"], 1500);
    assert_eq!(tag["cause"]["may_have_run"], true);
    assert_eq!(result.content.len(), 1, "the answer itself is untouched");
}

#[test]
fn an_unavailable_tool_tells_the_model_what_to_do() {
    let result = CallToolResult::unavailable(&cause()).unwrap();

    assert!(result.is_error());
    let text = result.content[0].as_text().unwrap().text.clone();
    for part in [
        "unavailable",
        "2 seconds",
        "No earlier answer",
        "check whether it did",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[test]
fn a_permanent_failure_is_not_to_be_called_again() {
    let permanent = Cause::from(&Failure::new(Class::NotSent).with_permanent());
    let result = CallToolResult::unavailable(&permanent).unwrap();
    let text = result.content[0].as_text().unwrap().text.clone();
    assert!(text.contains("Do not call it again."), "{text}");
    assert!(!text.contains("later"), "{text}");
}

#[test]
fn a_tool_that_never_ran_need_not_be_checked() {
    let refused = Cause::from(&Failure::new(Class::NotSent));
    let result = CallToolResult::unavailable(&refused).unwrap();
    let text = result.content[0].as_text().unwrap().text.clone();
    assert!(!text.contains("check whether"), "{text}");
}
