//! From an address to a WebSocket, and what is in the way.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures::future::join_all;
use serde_json::{Value, json};
use steadfast::{
    Class, Failure, Phase, Pool, ServerConfig,
    pool::{AnyConnect, HttpRefused, WebSocketConnect, process::Grace},
};
use steadfast_tests::probe::HttpRequests;
use tokio::time::Instant;
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore, crypto::aws_lc_rs, pki_types::CertificateDer,
    pki_types::pem::PemObject as _,
};

use crate::{
    over::{Listening, listen},
    support::{Agent, Stage, ms, pool_settings, quick, secs, text},
};

/// What an upgrade is answered, and what that means: class, whether it is for good, and a
/// word of what is told.
type Case = (Value, Class, bool, &'static str);

#[tokio::test]
async fn an_upgrade_that_is_refused_is_told_as_what_it_is_websocket() {
    let stage = Stage::enter().await;
    let cases: [Case; 14] = [
        (json!({"status": 401}), Class::Answered, true, "401"),
        (json!({"status": 403}), Class::Answered, true, "403"),
        (json!({"status": 404}), Class::NotSent, true, "404"),
        (json!({"status": 400}), Class::NotSent, true, "400"),
        (json!({"status": 405}), Class::NotSent, true, "405"),
        (json!({"status": 302}), Class::NotSent, true, "302"),
        (json!({"status": 408}), Class::NotSent, false, "408"),
        (json!({"status": 429}), Class::Overloaded, false, "429"),
        (json!({"status": 500}), Class::NotSent, false, "500"),
        (json!({"status": 503}), Class::NotSent, false, "503"),
        (json!({"status": 200}), Class::NotSent, true, "200"),
        (
            json!({"no_subprotocol": true}),
            Class::NotSent,
            true,
            "does not speak MCP over a WebSocket",
        ),
        (
            json!({"raw": "220 ready\r\n"}),
            Class::NotSent,
            false,
            "did not answer the upgrade",
        ),
        (
            json!({"hang_up": true}),
            Class::NotSent,
            false,
            "did not answer the upgrade",
        ),
    ];
    for (knobs, class, permanent, word) in cases {
        let pool = stage.pool();
        let probe = listen(&stage, &json!({"websocket": knobs}));

        let failure = acquire(&pool, &probe).await;

        let (is, told) = (failure.class(), failure.to_string());
        assert_eq!(is, class, "{knobs}: {told}");
        assert_eq!(failure.is_permanent(), permanent, "{knobs}: {told}");
        assert!(!failure.may_have_run(), "{knobs}: {told}");
        assert!(told.contains(word), "{knobs}: {told}");
        assert_eq!(stage.received("initialize"), 0, "{knobs}");
    }
    stage.end(Pool::new(pool_settings()).unwrap()).await;
}

#[tokio::test]
async fn a_login_that_is_asked_for_is_told_websocket() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let challenge = "Bearer resource_metadata=\"https://h/.well-known\"";
    let knobs = json!({"websocket": {
        "status": 401, "headers": {"WWW-Authenticate": challenge}, "body": "log in first",
    }});
    let probe = listen(&stage, &knobs);

    let failure = acquire(&pool, &probe).await;

    let refused: &HttpRefused = failure.find_source().unwrap();
    assert_eq!(
        (refused.status(), refused.challenge()),
        (401, Some(challenge))
    );
    assert!(!failure.to_string().contains("well-known"), "{failure}");
    stage.end(pool).await;
}

#[tokio::test]
async fn how_long_to_wait_is_read_from_what_refuses_an_upgrade_websocket() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    for (status, class) in [(429, Class::Overloaded), (503, Class::NotSent)] {
        let date = httpdate::fmt_http_date(in_a_while());
        for (after, least) in [("7", secs(7)), (date.as_str(), secs(20))] {
            let knobs = json!({"websocket": {
                "status": status, "headers": {"Retry-After": after},
            }});
            let probe = listen(&stage, &knobs);

            let failure = acquire(&pool, &probe).await;

            assert_eq!(failure.class(), class, "{failure}");
            let told = failure.retry_after().expect("it says how long");
            assert!(told >= least && told <= secs(60), "{after}: {told:?}");
        }
    }
    stage.end(pool).await;
}

#[tokio::test]
async fn h04_nobody_tries_before_the_time_that_the_server_named_websocket() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let requests = stage.path("requests");
    let once = json!({"websocket": {
        "status": 429, "times": 1, "headers": {"Retry-After": "2"}, "requests": requests,
    }});
    let probe = listen(&stage, &once);
    let config = ServerConfig::websocket("probe", probe.url())
        .build()
        .unwrap();
    let sessions: Vec<_> = (0..20).map(|n| pool.session(format!("s{n}"))).collect();
    let acquire = || join_all(sessions.iter().map(|session| session.acquire(&config)));
    let tries = || HttpRequests::new(&requests).entries().unwrap().len();

    let begun = Instant::now();
    for outcome in acquire().await {
        let failure = outcome.unwrap_err();
        assert_eq!(failure.class(), Class::Overloaded, "{failure}");
    }
    assert_eq!(tries(), 1, "one for all");
    let leases = acquire().await;

    assert!(leases.iter().all(Result::is_ok), "{leases:?}");
    assert!(begun.elapsed() >= secs(2), "{:?}", begun.elapsed());
    assert_eq!(tries(), 2, "and then one more");
    drop(leases);
    stage.end(pool).await;
}

#[tokio::test]
async fn what_does_not_answer_was_not_sent_within_the_connect_timeout_websocket() {
    let stage = Stage::enter().await;
    let limit = ms(500);
    let connect = WebSocketConnect::new().with_connect_timeout(limit);
    let pool = pool_with(connect);
    for knobs in [json!({"mute": true}), json!({"tls": "stall"})] {
        let probe = listen(&stage, &json!({"websocket": knobs}));

        let begun = Instant::now();
        let failure = acquire(&pool, &probe).await;

        let took = begun.elapsed();
        assert_eq!(failure.class(), Class::NotSent, "{knobs}: {failure}");
        assert_eq!(failure.phase(), Some(Phase::Connect), "{knobs}: {failure}");
        assert!(!failure.is_permanent(), "{knobs}: {failure}");
        assert!(took >= limit && took < secs(3), "{knobs}: {took:?}");
    }
    stage.end(pool).await;
}

#[tokio::test]
async fn a_refused_connection_was_not_sent_and_the_next_call_tries_again_websocket() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let probe = listen(&stage, &json!({}));
    let config = ServerConfig::websocket("probe", probe.url()).build();
    let once = steadfast::retry::Settings::new().with_max_retries(0);
    let agent = Agent::new(
        session.lease(&config.unwrap()).unwrap(),
        quick().with_retry(once),
    );
    probe.kill();

    let failure = agent.call("w", json!({"tag": "one"})).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Connect), "{failure}");
    assert!(!failure.is_permanent(), "{failure}");
    let io: &std::io::Error = failure.find_source().unwrap();
    assert_eq!(io.kind(), std::io::ErrorKind::ConnectionRefused);
    probe.start_again();
    let patient = Agent::new(agent.lease.clone(), quick());
    let answer = patient.call("w", json!({"tag": "two"})).await.unwrap();
    assert!(answer.is_live());
    assert_eq!((stage.executed("one"), stage.executed("two")), (0, 1));
    stage.end(pool).await;
}

#[tokio::test]
async fn a_name_that_nobody_has_was_not_sent_websocket() {
    let pool = pool_with(WebSocketConnect::new());
    let session = pool.session("a");
    // Too long a label for anybody to be asked about it: it ends in this machine.
    let nobody = format!("ws://{}.invalid/", "x".repeat(64));
    let config = ServerConfig::websocket("gone", nobody);

    let failure = session.acquire(&config.build().unwrap()).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Connect), "{failure}");
    assert!(!failure.is_permanent(), "{failure}");
}

#[tokio::test]
async fn a_certificate_is_trusted_only_if_somebody_says_so_websocket() {
    let stage = Stage::enter().await;
    let cert_file = stage.path("cert");
    let knobs = json!({"websocket": {"tls": "self_signed", "cert_file": cert_file}});
    let probe = listen(&stage, &knobs);
    assert!(probe.url().starts_with("wss://"));
    let strangers = stage.pool();

    let failure = acquire(&strangers, &probe).await;
    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert!(failure.is_permanent(), "{failure}");

    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(cert_file).unwrap())
        .unwrap();
    let tls = ClientConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let pool = pool_with(WebSocketConnect::new().with_tls(Arc::new(tls)));
    let session = pool.session("a");
    let config = ServerConfig::websocket("probe", probe.url())
        .build()
        .unwrap();
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());
    let answer = agent.call("w", json!({"echo": "secret"})).await.unwrap();
    assert_eq!(text(&answer.value), "secret");
    strangers.drain_all(secs(10)).await;
    stage.end(pool).await;
}

#[tokio::test]
async fn an_upgrade_carries_headers_login_and_subprotocol_websocket() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let requests = stage.path("requests");
    let probe = listen(&stage, &json!({"websocket": {"requests": requests}}));
    let plain = ServerConfig::websocket("plain", probe.url())
        .header("Authorization", "Bearer token")
        .header("X-Team", "blue");
    let url = probe.url().replace("ws://", "ws://me:s%40cret@");
    let login = ServerConfig::websocket("login", format!("{url}?a=b#c"));

    for config in [plain, login] {
        session.acquire(&config.build().unwrap()).await.unwrap();
    }

    let seen = HttpRequests::new(&requests).entries().unwrap();
    let [first, second] = &seen[..] else {
        panic!("two connections: {seen:?}");
    };
    assert_eq!(first.header("authorization"), Some("Bearer token"));
    assert_eq!(first.header("x-team"), Some("blue"));
    assert_eq!(first.header("sec-websocket-protocol"), Some("mcp"));
    assert_eq!(second.header("authorization"), Some("Basic bWU6c0BjcmV0"));
    assert_eq!(second.path, "/mcp?a=b");
    let host = probe.url();
    let host = host.trim_start_matches("ws://").trim_end_matches("/mcp");
    assert_eq!(second.header("host"), Some(host));
    stage.end(pool).await;
}

#[tokio::test]
async fn a_configuration_of_no_use_says_why_and_shows_no_secret_websocket() {
    let pool = pool_with(WebSocketConnect::new());
    let session = pool.session("a");
    for (config, word) in [
        (
            ServerConfig::websocket("s", "ws://me:hunter2@127.0.0.1:1/")
                .header("Authorization", "hunter2"),
            "the headers have an `authorization` too",
        ),
        (
            ServerConfig::websocket("s", "ws://127.0.0.1:99999/hunter2"),
            "the address is not valid",
        ),
    ] {
        let failure = session.acquire(&config.build().unwrap()).await.unwrap_err();

        assert!(failure.is_permanent(), "{failure}");
        assert_eq!(failure.class(), Class::NotSent, "{failure}");
        let told = format!("{failure} {failure:?}");
        assert!(told.contains(word), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
}

async fn acquire(pool: &Pool, probe: &Listening) -> Failure {
    let session = pool.session("a");
    let config = ServerConfig::websocket("probe", probe.url()).build();
    session.acquire(&config.unwrap()).await.unwrap_err()
}

fn pool_with(connect: WebSocketConnect) -> Pool {
    let grace = Grace::new(ms(300), ms(300), secs(1));
    let connect = AnyConnect::new(grace).with_websocket(connect);
    Pool::with_connector(pool_settings(), connect).unwrap()
}

#[allow(
    clippy::disallowed_methods,
    reason = "a date in a header is wall-clock time"
)]
fn in_a_while() -> SystemTime {
    SystemTime::now() + Duration::from_secs(30)
}
