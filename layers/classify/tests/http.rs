//! What HTTP requests and responses mean.
#![cfg(feature = "http")]
#![allow(clippy::unwrap_used, reason = "test helpers")]

use std::time::{Duration, SystemTime};

use http::{Request, Response};
use steadfast_classify::{
    Call, CallContext, Class, Effect, Failure,
    http::{RefusedResponse, classify_response, parse_retry_after},
};

fn request(method: &str) -> Request<()> {
    Request::builder().method(method).body(()).unwrap()
}

fn response(status: u16, retry_after: Option<&str>) -> Response<&'static str> {
    let mut response = Response::builder().status(status);
    if let Some(value) = retry_after {
        response = response.header("retry-after", value);
    }
    response.body("body").unwrap()
}

#[test]
fn the_method_decides_the_effect() {
    for (method, want) in [
        ("GET", Effect::ReadOnly),
        ("HEAD", Effect::ReadOnly),
        ("OPTIONS", Effect::ReadOnly),
        ("TRACE", Effect::ReadOnly),
        ("PUT", Effect::Idempotent),
        ("DELETE", Effect::Idempotent),
        ("POST", Effect::NonIdempotent),
        ("PATCH", Effect::NonIdempotent),
        ("PURGE", Effect::NonIdempotent),
    ] {
        assert_eq!(request(method).effect(), want, "{method}");
    }
}

#[test]
fn a_key_makes_a_post_repeatable() {
    let mut post = request("POST");
    post.headers_mut()
        .insert("idempotency-key", "k1".parse().unwrap());
    assert_eq!(post.effect(), Effect::Idempotent);
}

#[test]
fn the_context_lives_in_the_extensions() {
    let mut request = request("GET");
    assert!(Call::context(&request).is_none());

    request.context_mut().unwrap().set_attempt(2);

    assert_eq!(
        request.extensions().get::<CallContext>().unwrap().attempt(),
        2
    );
    assert_eq!(request.clone().context().unwrap().attempt(), 2);
}

#[test]
fn a_status_is_a_class() {
    for (status, want) in [
        (200, None),
        (302, None),
        (400, None),
        (401, None),
        (404, None),
        (408, None),
        (429, Some(Class::Overloaded)),
        (500, Some(Class::Unknown)),
        (502, Some(Class::Unknown)),
        (503, Some(Class::Unknown)),
        (504, Some(Class::Unknown)),
    ] {
        let class = classify_response(response(status, None)).err();
        assert_eq!(class.as_ref().map(Failure::class), want, "{status}");
    }
}

#[test]
fn the_refused_response_can_still_be_read() {
    let failure = classify_response(response(503, Some("7"))).unwrap_err();
    assert_eq!(failure.retry_after(), Some(Duration::from_secs(7)));

    let refused = failure
        .find_source::<RefusedResponse<&'static str>>()
        .unwrap();

    assert_eq!(refused.status(), 503);
    assert_eq!(*refused.take().unwrap().body(), "body");
    assert!(refused.take().is_none());
}

#[test]
fn retry_after_is_read_in_both_forms() {
    let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
    for (value, want) in [
        ("120", Some(120)),
        (" 3 ", Some(3)),
        ("0", Some(0)),
        ("99999999999999999999", Some(u64::MAX)),
        ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
        ("Sun, 06 Nov 1994 08:49:27 GMT", Some(0)),
        ("Sunday, 06-Nov-94 08:49:38 GMT", Some(1)),
        ("Sun Nov  6 08:49:39 1994", Some(2)),
        ("-1", None),
        ("1.5", None),
        ("+1", None),
        ("soon", None),
        ("", None),
    ] {
        let wait = parse_retry_after(value, now);
        assert_eq!(wait, want.map(Duration::from_secs), "{value:?}");
    }
    assert!(now > SystemTime::UNIX_EPOCH);
}
