//! Servers to which no connection can be made: nothing was sent, and that is known in time.

use std::{net::SocketAddr, time::Duration};

use reqwest::{
    Certificate,
    dns::{Name, Resolve, Resolving},
};
use serde_json::{Value, json};
use steadfast::{
    Class, Failure, Phase, Pool,
    circuit_breaker::State,
    pool::{AnyConnect, HttpConnect},
};
use steadfast_tests::probe::HttpProbe;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    time::{Instant, timeout},
};

use crate::{
    place::{once, remote},
    support::{Agent, SOON, Stage, ms, pool_settings, quick, secs},
};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_millis(700);

/// Finds no name, or never answers.
struct Names {
    answers: bool,
}

impl Resolve for Names {
    fn resolve(&self, _name: Name) -> Resolving {
        let answers = self.answers;
        Box::pin(async move {
            if !answers {
                std::future::pending::<()>().await;
            }
            Err("no such host".into())
        })
    }
}

#[tokio::test]
async fn a_server_that_refuses_connections_was_sent_nothing_http() {
    let stage = Stage::enter().await;
    let url = format!("http://127.0.0.1:{}/mcp", free_port().await);
    let failure = unreachable(&stage, &url, HttpConnect::new()).await;
    assert!(!failure.is_permanent(), "it may come back: {failure}");
    assert!(
        failure.to_string().to_lowercase().contains("refused"),
        "{failure}"
    );
}

#[tokio::test]
async fn a_name_that_is_not_found_was_sent_nothing_http() {
    for (answers, word) in [(true, "no such host"), (false, "in time")] {
        let stage = Stage::enter().await;
        let connect =
            HttpConnect::new().with_client(move |client| client.dns_resolver(Names { answers }));
        let failure = unreachable(&stage, "http://server.example/mcp", connect).await;
        assert!(!failure.is_permanent(), "{failure}");
        assert!(failure.to_string().contains(word), "{failure}");
    }
}

#[tokio::test]
async fn a_server_that_takes_no_connection_was_sent_nothing_http() {
    let stage = Stage::enter().await;
    // Nobody accepts, and the line is full: the next who knocks hears nothing at all.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut line = Vec::new();
    while let Ok(Ok(stream)) = timeout(ms(300), TcpStream::connect(address)).await {
        line.push(stream);
        assert!(line.len() < 100, "the line is never full");
    }

    let url = format!("http://{address}/mcp");
    let failure = unreachable(&stage, &url, HttpConnect::new()).await;
    assert!(!failure.is_permanent(), "{failure}");
}

#[tokio::test]
async fn a_handshake_of_tls_that_stalls_was_sent_nothing_http() {
    let stage = Stage::enter().await;
    let probe = probe(&stage, json!({"tls": "stall"})).await;
    let failure = unreachable(&stage, &probe.url(), HttpConnect::new()).await;
    assert!(!failure.is_permanent(), "{failure}");
    assert!(probe.accepted() >= 1);
}

#[tokio::test]
async fn a_certificate_that_nobody_signed_is_wrong_for_good_http() {
    let stage = Stage::enter().await;
    let probe = probe(&stage, json!({"tls": "self_signed"})).await;
    let failure = unreachable(&stage, &probe.url(), HttpConnect::new()).await;
    assert!(failure.is_permanent(), "{failure}");
    assert_eq!(failure.attempts(), 1, "{failure}");
    assert_eq!(probe.requests().len(), 0);

    // Who trusts it is served.
    let certificate = Certificate::from_pem(probe.certificate().unwrap().as_bytes()).unwrap();
    let connect =
        HttpConnect::new().with_client(move |client| client.tls_certs_merge([certificate.clone()]));
    let pool = pool(connect);
    let session = pool.session("a");
    let config = remote(&probe.url(), json!({}));
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());
    assert!(
        agent
            .call("w", json!({"tag": "trusted"}))
            .await
            .unwrap()
            .is_live()
    );
    assert_eq!(stage.executed("trusted"), 1);
    drop(session);
    stage.end(pool).await;
}

#[tokio::test]
async fn a_server_that_went_away_behind_a_connection_was_sent_nothing_http() {
    let stage = Stage::enter().await;
    let probe = probe(&stage, json!({})).await;
    let pool = pool(HttpConnect::new());
    let session = pool.session("a");
    let config = remote(&probe.url(), json!({}));
    let agent = Agent::new(session.acquire(&config).await.unwrap(), once());
    drop(probe);
    // A request that crosses the end of its connection may have arrived. This one does not:
    // by now the end is known.
    tokio::time::sleep(ms(100)).await;
    let failure = agent.call("w", json!({"tag": "w"})).await.unwrap_err();
    check(&failure);
    assert_eq!(stage.executed("w"), 0);
    drop(session);
    stage.end(pool).await;
}

async fn probe(stage: &Stage, http: Value) -> HttpProbe {
    let knobs = stage.knobs(&json!({ "http": http }));
    HttpProbe::start(knobs).await.unwrap()
}

fn pool(connect: HttpConnect) -> Pool {
    let settings = pool_settings();
    let http = connect.with_connect_timeout(CONNECT);
    let connect = AnyConnect::new(settings.closing).with_http(http);
    Pool::with_connector(settings, connect).unwrap()
}

/// Calls a server that cannot be reached, and says what came of it.
async fn unreachable(stage: &Stage, url: &str, connect: HttpConnect) -> Failure {
    let pool = pool(connect);
    let session = pool.session("a");
    let config = remote(url, json!({}));
    let agent = Agent::new(session.lease(&config).unwrap(), once());
    let begun = Instant::now();
    let failure = agent.call("w", json!({"tag": "w"})).await.unwrap_err();
    let took = begun.elapsed();
    assert!(took < CONNECT + SOON, "{took:?}: {failure}");
    check(&failure);
    assert_eq!(stage.executed("w"), 0);
    let opened = agent.circuit().is_some_and(|state| state != State::Closed);
    assert!(!opened, "one failure opens nothing");
    pool.drain_all(secs(5)).await;
    failure
}

fn check(failure: &Failure) {
    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Connect), "{failure}");
    assert!(!failure.may_have_run(), "{failure}");
}

async fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}
