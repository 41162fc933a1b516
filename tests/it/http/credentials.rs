//! Whose credentials go where.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::future::{BoxFuture, FutureExt as _};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use steadfast::{
    Class, Pool, ServerConfig,
    circuit_breaker::State,
    pool::{AnyConnect, Authorize, AuthorizeError, HttpConnect, Rejected},
};
use steadfast_tests::probe::HttpProbe;
use tokio::time::{Instant, sleep};

use crate::{
    place::Place,
    support::{Agent, SOON, ms, pool_settings, quick, secs},
};

#[tokio::test]
async fn k01_each_session_acts_with_its_own_token_http() {
    let place = Place::enter(json!({})).await;
    let sessions = ["1", "2"].map(|name| place.pool.session(name));
    let mut agents = Vec::new();
    for (number, session) in sessions.iter().enumerate() {
        let config = place.config(json!({
            "headers": {"Authorization": format!("Bearer T{}", number + 1)},
            "steadfast": {"shared": true},
        }));
        agents.push(Agent::new(session.acquire(&config).await.unwrap(), quick()));
    }
    assert_eq!(place.pool.snapshot().servers["probe"].entry_count, 2);

    for _ in 0..5 {
        for (number, agent) in agents.iter().enumerate() {
            let tag = json!({"tag": format!("of {}", number + 1)});
            assert!(agent.call("w", tag).await.unwrap().is_live());
        }
    }

    let sent: BTreeSet<_> = place
        .requests("tools/call")
        .into_iter()
        .map(|seen| {
            (
                seen.tag.clone().unwrap(),
                seen.header("authorization").unwrap().to_owned(),
            )
        })
        .collect();
    let want = [("of 1", "Bearer T1"), ("of 2", "Bearer T2")];
    assert_eq!(
        sent,
        want.map(|(tag, token)| (tag.to_owned(), token.to_owned()))
            .into()
    );
    drop((agents, sessions));
    place.end().await;
}

#[tokio::test]
async fn sessions_share_a_connection_only_where_that_is_wanted_http() {
    for (fields, connections) in [(json!({}), 3), (json!({"steadfast": {"shared": true}}), 1)] {
        let place = Place::enter(json!({})).await;
        let sessions = ["1", "2", "3"].map(|name| place.pool.session(name));
        let mut leases = Vec::new();
        for session in &sessions {
            leases.push(
                session
                    .acquire(&place.config(fields.clone()))
                    .await
                    .unwrap(),
            );
        }
        assert_eq!(place.probe.received("initialize"), connections, "{fields}");
        assert_eq!(place.probe.sessions(), connections, "{fields}");
        drop((leases, sessions));
        place.end().await;
    }
}

#[tokio::test]
async fn a_rotated_token_is_used_from_the_next_acquire_on_http() {
    let place = Place::enter(json!({})).await;
    let with = |token: &str| {
        place.config(json!({"headers": {"Authorization": format!("Bearer {token}")}}))
    };
    let old = Agent::new(place.session.acquire(&with("old")).await.unwrap(), quick());
    let running = old.begin("w", json!({"tag": "running", "delay_ms": 800}));
    place.stage.executed_soon("running").await;

    let new = Agent::new(place.session.acquire(&with("new")).await.unwrap(), quick());
    assert!(
        new.call("w", json!({"tag": "after"}))
            .await
            .unwrap()
            .is_live()
    );

    assert!(!running.is_finished());
    assert!(
        running.await.unwrap().unwrap().is_live(),
        "it finishes where it began"
    );
    let sent = |tag: &str| {
        let calls = place.requests("tools/call");
        let call = calls
            .into_iter()
            .find(|seen| seen.tag.as_deref() == Some(tag));
        call.unwrap().header("authorization").unwrap().to_owned()
    };
    assert_eq!(
        (sent("running"), sent("after")),
        ("Bearer old".into(), "Bearer new".into())
    );
    drop((old, new));
    place.end().await;
}

#[tokio::test]
async fn k05_no_token_follows_a_redirect_elsewhere_http() {
    let place = Place::enter(json!({})).await;
    let elsewhere = HttpProbe::start(place.stage.knobs(&json!({})))
        .await
        .unwrap();
    let headers = json!({"headers": {"Authorization": "Bearer T"}});
    let agent = place.agent_with(headers, quick().without_breaker()).await;
    let origin = format!("http://127.0.0.1:{}", place.probe.port());
    let other = format!("http://127.0.0.1:{}", elsewhere.port());
    let by_name = format!("http://localhost:{}", place.probe.port());
    let https = format!("https://127.0.0.1:{}", place.probe.port());

    for (status, location, followed) in [
        (307, format!("{origin}/moved"), true),
        (308, "/moved".to_owned(), true),
        (307, format!("{other}/mcp"), false),
        (308, format!("{by_name}/mcp"), false),
        (307, format!("{https}/mcp"), false),
        (302, "/moved".to_owned(), false),
        (303, "/moved".to_owned(), false),
        (307, String::new(), false),
    ] {
        let tag = format!("{status} {location}");
        let before = place.probe.requests().len();
        let fault = json!({"status": status, "times": 1, "headers": {"Location": location}});
        let begun = Instant::now();
        let outcome = agent.call("w", json!({"tag": tag, "http": fault})).await;
        assert!(begun.elapsed() < SOON, "{tag}");

        let seen = &place.probe.requests()[before..];
        assert_eq!(seen.len(), 1 + usize::from(followed), "{tag}: {seen:?}");
        assert_eq!(place.stage.executed(&tag), usize::from(followed), "{tag}");
        if followed {
            assert!(outcome.unwrap().is_live(), "{tag}");
            assert_eq!(
                (seen[1].method.as_str(), seen[1].path.as_str()),
                ("POST", "/moved")
            );
            assert_eq!(seen[1].body, seen[0].body, "{tag}");
            assert_eq!(seen[1].header("authorization"), Some("Bearer T"));
        } else {
            let failure = outcome.unwrap_err();
            assert_eq!(failure.class(), Class::Answered, "{tag}: {failure}");
            assert!(
                failure.to_string().contains(&status.to_string()),
                "{failure}"
            );
        }
    }

    let fault = json!({"status": 307, "headers": {"Location": "/mcp"}});
    let before = place.probe.requests().len();
    let failure = agent
        .call("w", json!({"tag": "loop", "http": fault}))
        .await
        .unwrap_err();
    assert_eq!(failure.class(), Class::Answered, "{failure}");
    assert!(place.probe.requests().len() - before <= 4);
    assert_eq!(place.stage.executed("loop"), 0);
    assert_eq!(elsewhere.accepted(), 0, "nobody comes there at all");
    place.end().await;
}

/// What happens to whoever wants a new token.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Renews,
    NobodyThere,
    Refused,
}

/// Renews a token that can be renewed only once.
#[derive(Clone, Debug)]
struct Keys {
    current: Arc<Mutex<String>>,
    asked: Arc<AtomicUsize>,
    fate: Arc<Mutex<Fate>>,
}

impl Authorize for Keys {
    fn token(
        &self,
        _server: &ServerConfig,
        rejected: Option<Rejected>,
    ) -> BoxFuture<'static, Result<Option<SecretString>, AuthorizeError>> {
        let keys = self.clone();
        async move {
            let Some(rejected) = rejected else {
                return Ok(Some(keys.current.lock().unwrap().clone().into()));
            };
            keys.asked.fetch_add(1, Ordering::Relaxed);
            sleep(ms(100)).await;
            match *keys.fate.lock().unwrap() {
                Fate::NobodyThere => Err(AuthorizeError::unavailable("the network is down")),
                Fate::Refused => Err(AuthorizeError::refused("invalid_grant")),
                Fate::Renews => {
                    let refused = rejected.token.unwrap().expose_secret().to_owned();
                    let mut current = keys.current.lock().unwrap();
                    assert_eq!(
                        refused, *current,
                        "an old token does not unseat a newer one"
                    );
                    current.push('+');
                    Ok(Some(current.clone().into()))
                }
            }
        }
        .boxed()
    }
}

#[tokio::test]
async fn k10_one_refresh_serves_all_who_were_refused_http() {
    let place = Place::enter(json!({"token": "T", "challenge": "Bearer realm=\"probe\""})).await;
    let keys = Keys {
        current: Arc::new(Mutex::new("T".to_owned())),
        asked: Arc::default(),
        fate: Arc::new(Mutex::new(Fate::Renews)),
    };
    let settings = pool_settings();
    let http = HttpConnect::new().with_authorize(keys.clone());
    let connect = AnyConnect::new(settings.closing).with_http(http);
    let pool = Pool::with_connector(settings, connect).unwrap();
    let session = pool.session("a");
    let lease = session.acquire(&place.config(json!({}))).await.unwrap();
    // Ten failures at once would open the circuit.
    let agent = Agent::new(lease, quick().without_breaker());
    let token = |token: &str| {
        let token = token.to_owned();
        place.probe.change(|knobs| knobs.token = Some(token));
    };
    let ten = |name: &'static str| {
        let agent = agent.clone();
        async move {
            let calls =
                (0..10).map(|number| agent.begin("w", json!({"tag": format!("{name} {number}")})));
            let calls: Vec<_> = calls.collect();
            let mut outcomes = Vec::new();
            for call in calls {
                outcomes.push(call.await.unwrap());
            }
            outcomes
        }
    };

    token("T+");
    assert!(
        ten("renewed")
            .await
            .into_iter()
            .all(|outcome| outcome.is_ok())
    );
    assert_eq!(keys.asked.load(Ordering::Relaxed), 1, "one refresh for ten");
    for number in 0..10 {
        assert_eq!(place.stage.executed(&format!("renewed {number}")), 1);
    }

    *keys.fate.lock().unwrap() = Fate::NobodyThere;
    token("T++");
    for outcome in ten("nobody").await {
        let failure = outcome.unwrap_err();
        assert_eq!(failure.class(), Class::NotSent, "{failure}");
        assert!(!failure.may_have_run(), "{failure}");
    }
    // The credentials were kept: as soon as somebody is there, they do.
    *keys.fate.lock().unwrap() = Fate::Renews;
    sleep(ms(500)).await;
    let agent = Agent::new(agent.lease.clone(), quick());
    assert!(
        agent
            .call("w", json!({"tag": "again"}))
            .await
            .unwrap()
            .is_live()
    );
    assert_eq!(*keys.current.lock().unwrap(), "T++");

    *keys.fate.lock().unwrap() = Fate::Refused;
    token("another");
    let failure = agent
        .call("w", json!({"tag": "refused"}))
        .await
        .unwrap_err();
    assert_eq!(failure.class(), Class::Answered, "{failure}");
    assert_eq!(failure.attempts(), 1, "{failure}");
    assert_eq!(agent.circuit(), Some(State::Closed));
    assert_eq!(place.stage.executed("refused"), 0);
    // The server changes its mind: the token that was there is still there.
    token("T++");
    assert!(
        agent
            .call("w", json!({"tag": "kept"}))
            .await
            .unwrap()
            .is_live()
    );

    drop(session);
    pool.drain_all(secs(5)).await;
    place.end().await;
}
