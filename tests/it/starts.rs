//! Starts that are slow, that fail, and that many wait for.

use std::{path::Path, sync::Arc};

use futures::future::join_all;
use serde_json::{Value, json};
use steadfast::{Class, ConfigFile, Failure, Lease, Phase, Pool, ServerConfig, timeout};
use tokio::time::{Instant, sleep};

use crate::{
    marked::{Marked, wrapped},
    support::{Agent, SOON, Stage, gone, ms, pool_settings, quick, secs, until},
};

/// Slow on its first start only, and with a helper, as an installer is.
fn cold_once() -> Value {
    json!({
        "start": {"delay_ms": 4000},
        "process": {"helper": {}},
        "later": {"after_starts": 1, "knobs": {"start": {"delay_ms": 100}}},
    })
}

#[tokio::test]
async fn b02_a_start_beyond_its_limit_leaves_nothing_and_the_next_acquire_works_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let entry = wrapped(&stage, &cold_once(), "");
    let limited = |limit_ms: u64| {
        let mut entry = entry.clone();
        entry["discoveryTimeoutMs"] = json!(limit_ms);
        servers(&json!({ "cold": entry })).remove(0)
    };
    let tree = Marked::new(&stage);
    let begun = Instant::now();

    let failure = session.acquire(&limited(2000)).await.unwrap_err();

    let took = begun.elapsed();
    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Connect), "{failure}");
    assert!(failure.to_string().contains("\"cold\""), "{failure}");
    assert!(took >= secs(2) && took < secs(4), "{took:?}");
    tree.gone_within(SOON).await;
    assert!(
        tree.alive().is_empty(),
        "wrapper, server and helper are gone"
    );

    let lease = session.acquire(&limited(2000)).await;
    assert!(lease.is_ok(), "the next is tried again: {lease:?}");
    assert_eq!(stage.started().len(), 2);
    drop((lease, session));
    stage.end(pool).await;
}

#[tokio::test]
async fn b02_a_start_within_its_limit_succeeds_the_first_time_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let patient = stage.server_with(&cold_once(), json!({"discoveryTimeoutMs": 10_000}));

    let lease = session.acquire(&patient).await;

    assert!(lease.is_ok(), "{lease:?}");
    assert_eq!(stage.started().len(), 1);
    drop((lease, session));
    stage.end(pool).await;
}

#[tokio::test]
async fn b02_a_cold_start_has_longer_than_a_call_may_take_to_connect_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let limits = timeout::Settings::new().with_connect(ms(300));
    let cold_once = json!({
        "start": {"delay_ms": 2000},
        "later": {"after_starts": 1, "knobs": {}},
    });

    let cut_off = stage.server_with(&cold_once, json!({"discoveryTimeoutMs": 500}));
    let agent = Agent::new(
        session.lease(&cut_off).unwrap(),
        quick().with_timeout(limits),
    );
    assert!(agent.call("w", json!({})).await.unwrap().is_live());
    let [cold, warm] = stage.started()[..] else {
        panic!("the next attempt tries again: {:?}", stage.started());
    };
    gone([cold]).await;

    let awaited = stage.server(&json!({"start": {"delay_ms": 1000}}));
    let agent = Agent::new(
        session.lease(&awaited).unwrap(),
        quick().with_timeout(limits),
    );
    assert!(agent.call("w", json!({})).await.unwrap().is_live());
    assert_eq!(stage.started().len(), 3);
    assert_ne!(stage.started()[2], warm);
    stage.end(pool).await;
}

#[tokio::test]
async fn i09_a_changed_configuration_ends_the_old_server_once_nobody_holds_it_stdio() {
    let stage = Stage::enter().await;
    let pool = Pool::new(pool_settings().with_grace(ms(100))).unwrap();
    let (one, other) = (pool.session("one"), pool.session("other"));
    let config = |args: &str| stage.server_with(&json!({}), json!({"env": {"EDITED": args}}));
    let (old, new) = (config("before"), config("after"));
    let mine = one.acquire(&old).await.unwrap();
    let theirs = other.acquire(&old).await.unwrap();
    let before = stage.started()[0];

    let edited = one.acquire(&new).await.unwrap();
    drop(mine);
    sleep(ms(500)).await;
    Agent::new(theirs.clone(), quick())
        .call("w", json!({"tag": "old"}))
        .await
        .unwrap();
    assert_eq!(pool.snapshot().subprocess_count, 2, "somebody holds it");

    drop(theirs);
    gone([before]).await;
    assert!(until(|| pool.snapshot().subprocess_count == 1).await);
    Agent::new(edited.clone(), quick())
        .call("w", json!({"tag": "new"}))
        .await
        .unwrap();
    assert_eq!(stage.started().len(), 2, "one for each configuration");
    drop((edited, one, other));
    stage.end(pool).await;
}

#[tokio::test]
async fn l06_calls_that_race_the_handshake_wait_for_it_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let strict = stage.server(&json!({"start": {"delay_ms": 500, "strict": true}}));
    let agent = Agent::new(session.lease(&strict).unwrap(), quick());

    let calls = join_all((0..10).map(|n| agent.call("w", json!({"echo": n})))).await;

    for call in calls {
        let answer = call.unwrap();
        assert!(answer.is_live(), "{answer:?}");
        assert_ne!(answer.value.is_error, Some(true), "{answer:?}");
    }
    let events = stage.events();
    let first = |method: &str| {
        let is = |event: &steadfast_tests::probe::Event| event.method.as_deref() == Some(method);
        events.iter().position(is).expect("it was received")
    };
    assert!(first("notifications/initialized") < first("tools/call"));
    assert_eq!(stage.received("tools/call"), 10);
    assert_eq!(stage.started().len(), 1);
    drop((agent, session));
    stage.end(pool).await;
}

#[tokio::test]
async fn r01_bad_servers_neither_hold_up_nor_take_down_the_good_one_stdio() {
    let stage = Stage::enter().await;
    let settings = pool_settings().with_start_timeout_local(secs(1));
    let pool = Pool::new(settings).unwrap();
    let session = pool.session("a");
    let probe = |knobs| {
        stage
            .knobs(&knobs)
            .server_json(Path::new(env!("CARGO_BIN_EXE_probe")))
    };
    let configs = servers(&json!({
        "exits": probe(json!({"start": {"exit": 3, "stderr": "no licence"}})),
        "fine": probe(json!({})),
        "a hang": probe(json!({"start": {"never": true}})),
        "missing": {"command": "/nowhere/to/be/found"},
    }));
    let fine = configs.iter().find(|config| &**config.name() == "fine");
    let fine = fine.unwrap();
    let begun = Instant::now();

    let called = async {
        sleep(ms(100)).await;
        let agent = Agent::new(session.lease(fine).unwrap(), quick());
        agent.call("w", json!({"tag": "early"})).await.unwrap();
        // The first of them still hangs, and the others were asked for all the same.
        let held = pool.snapshot().servers["fine"].entry_summary[0].refs;
        (agent.lease.tools().tools.len(), held, begun.elapsed())
    };
    let (acquired, (tools, held, early)) = tokio::join!(session.acquire_all(&configs), called);
    let whole = begun.elapsed();

    assert_eq!((tools, held), (5, 2));
    assert!(whole >= secs(1) && whole < secs(1) + SOON, "{whole:?}");
    assert!(
        early < whole,
        "it waited for nobody: {early:?} of {whole:?}"
    );
    assert_causes_are_told(&acquired);
    drop((acquired, session));
    stage.end(pool).await;
}

/// Each of the bad ones is named with its own cause, and the good one is there.
fn assert_causes_are_told(acquired: &[(Arc<str>, Result<Lease, Failure>)]) {
    for (name, lease) in acquired {
        let why = match &**name {
            "exits" => "no licence",
            "a hang" => "not ready in time",
            "missing" => "/nowhere/to/be/found",
            _ => {
                assert!(lease.is_ok(), "{name}: {lease:?}");
                continue;
            }
        };
        let failure = lease.as_ref().unwrap_err();
        assert_eq!(failure.class(), Class::NotSent, "{failure}");
        let told = failure.to_string();
        assert!(told.contains(&**name) && told.contains(why), "{told}");
    }
}

fn servers(entries: &Value) -> Vec<ServerConfig> {
    let file = json!({ "mcpServers": entries });
    let servers = ConfigFile::parse(&file.to_string()).into_servers();
    servers.expect("good entries")
}
