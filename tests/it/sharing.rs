//! One server for many sessions, and nothing of it left when they have gone.

use futures::future::join_all;
use serde_json::json;
use steadfast::{Class, Pool, pool::Status};
use steadfast_tests::probe::EventKind;

use crate::support::{Agent, Stage, gone, kill_unseen, ms, pool_settings, quick, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_acquires_at_once_start_one_server() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let config = stage.server(&json!({"start": {"delay_ms": 300}}));

    let sessions: Vec<_> = (0..64).map(|n| pool.session(format!("s{n}"))).collect();
    let acquires = sessions.iter().map(|session| session.acquire(&config));
    let leases = join_all(acquires).await;

    let leases: Vec<_> = leases.into_iter().map(Result::unwrap).collect();
    let entry = pool.snapshot().servers["probe"].entry_summary[0].clone();
    assert_eq!((entry.refs, entry.status), (64, Status::Connected));
    assert_eq!(stage.started().len(), 1);
    assert_eq!(stage.received("initialize"), 1);
    assert_eq!(stage.received("tools/list"), 1);
    let calls = leases.into_iter().map(async |lease| {
        let answer = Agent::new(lease, quick()).call("pid", json!({})).await;
        answer.unwrap().value.structured_content.unwrap()["pid"].clone()
    });
    let pids = join_all(calls).await;
    assert_eq!(pids, vec![json!(entry.pid); 64]);
    stage.end(pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_acquires_share_one_failed_start() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let broken = json!({"start": {
        "stderr": "no licence", "exit_on_initialize": 3, "delay_ms": 500,
    }});
    let config = stage.server(&broken);

    let sessions: Vec<_> = (0..64).map(|n| pool.session(format!("s{n}"))).collect();
    let acquires = sessions.iter().map(|session| session.acquire(&config));
    let failures = join_all(acquires).await;

    for failure in failures {
        let failure = failure.unwrap_err();
        assert_eq!(failure.class(), Class::NotSent, "{failure}");
        let told = failure.to_string();
        assert!(
            told.contains("status 3") && told.contains("no licence"),
            "{told}"
        );
    }
    assert_eq!(stage.started().len(), 1);
    stage.end(pool).await;
}

#[tokio::test]
async fn i01_a_wrapper_its_server_and_its_helper_end_together_stdio() {
    for setsid in [false, true] {
        for ended_by in ["release", "drain", "crash", "drop"] {
            let stage = Stage::enter().await;
            let settings = pool_settings().with_grace(ms(100));
            let pool = Pool::new(settings).unwrap();
            let helper = json!({"ignore_sigterm": true, "setsid": setsid});
            // Not `exec`: the shell stays, and waits.
            let wrapper = json!({
                "command": "sh",
                "args": ["-c", "\"$0\" --probe; exit $?", env!("CARGO_BIN_EXE_probe")],
            });
            let config = stage.server_with(&json!({"process": {"helper": helper}}), wrapper);
            let session = pool.session("a");
            let lease = session.acquire(&config).await.unwrap();
            let wrapper = pool.snapshot().servers["probe"].entry_summary[0]
                .pid
                .unwrap();
            let (server, helper) = (stage.started()[0], stage.pids(EventKind::Helper)[0]);
            assert!(wrapper != server && server != helper);

            let mut pool = Some(pool);
            match ended_by {
                "release" => session.close(),
                "drain" => drop(pool.as_ref().unwrap().drain_all(ms(3000)).await),
                "crash" => kill_unseen(wrapper),
                _ => pool = None,
            }

            gone([wrapper, server, helper]).await;
            drop(lease);
            if let Some(pool) = pool {
                pool.drain_all(ms(3000)).await;
                stage.ended(pool).await;
            }
        }
    }
}

#[tokio::test]
async fn j01_sessions_with_one_configuration_share_one_server_stdio() {
    let stage = Stage::enter().await;
    let pool = Pool::new(pool_settings().with_grace(ms(100))).unwrap();
    let config = stage.server(&json!({}));
    let children = || pool.snapshot().subprocess_count;
    let sessions: Vec<_> = (0..30).map(|n| pool.session(format!("s{n}"))).collect();

    let shared = join_all(sessions.iter().map(|session| session.acquire(&config))).await;
    assert!(shared.iter().all(Result::is_ok));
    assert_eq!(children(), 1);

    let others = ["one", "two", "three"];
    let others = others.map(|who| stage.server_with(&json!({}), json!({"env": {"WHO": who}})));
    let own = join_all(
        sessions
            .iter()
            .zip(others.iter().cycle())
            .map(|(session, other)| session.acquire(other)),
    )
    .await;
    assert!(own.iter().all(Result::is_ok));
    assert_eq!(children(), 1 + 3);

    let nested = sessions[0].acquire(&config).await.unwrap();
    let answer = Agent::new(nested, quick()).call("w", json!({})).await;
    assert!(answer.unwrap().is_live());
    assert_eq!(children(), 1 + 3);
    assert_eq!(stage.started().len(), 1 + 3);

    drop(sessions);
    assert!(until(|| children() == 0).await, "{:?}", pool.snapshot());
    gone(stage.started()).await;
    drop((shared, own));
    stage.end(pool).await;
}
