//! Sessions that the server has lost, and how they are got back.

use serde_json::json;
use steadfast::{Class, Lease, Limits, circuit_breaker::State, pool::Respawn};
use steadfast_tests::probe::HttpProbe;
use tokio::time::Instant;

use crate::{
    place::{Place, once},
    support::{Agent, SOON, ms, object, pool_settings, quick, secs, text, until},
};

#[tokio::test]
async fn e01_a_forgotten_session_is_got_back_once_for_all_callers_http() {
    let place = Place::enter(json!({})).await;
    let agent = place.agent(json!({})).await;
    let old = place.requests("tools/list")[0]
        .session()
        .unwrap()
        .to_owned();
    place.probe.forget_sessions();

    let calls: Vec<_> = (0..10)
        .map(|number| agent.begin("r", json!({"tag": number.to_string()})))
        .collect();
    for call in calls {
        assert!(call.await.unwrap().unwrap().is_live());
    }

    let initializes = place.requests("initialize");
    assert_eq!(initializes.len(), 2, "once for all of them");
    assert!(initializes.iter().all(|seen| seen.session().is_none()));
    for number in 0..10 {
        assert_eq!(place.stage.executed(&number.to_string()), 1, "{number}");
    }
    let requests = place.probe.requests();
    let renewed = requests
        .iter()
        .rposition(|seen| seen.is("initialize"))
        .unwrap();
    let later: Vec<_> = requests[renewed..]
        .iter()
        .filter(|seen| seen.is("tools/call"))
        .collect();
    assert_eq!(later.len(), 10);
    let new = later[0].session().unwrap();
    assert_ne!(new, old);
    assert!(later.iter().all(|seen| seen.session() == Some(new)));
    place.end().await;
}

#[tokio::test]
async fn e03_what_comes_late_from_the_old_session_changes_nothing_http() {
    let place = Place::enter(json!({"echo_session": true})).await;
    let agent = place.agent(json!({})).await;
    let late = agent.begin("r", json!({"tag": "late", "delay_ms": 900, "echo": "late"}));
    place.stage.executed_soon("late").await;
    place.probe.forget_sessions();
    place.faults(json!([{"on": ["initialize"], "delay_ms": 500}]));

    let renews = agent.begin("r", json!({"tag": "renews"}));
    assert!(until(|| place.probe.received("initialize") == 2).await);
    // It gives up while the session is being got back, and must not run afterwards.
    let gives_up = agent
        .lease
        .tool("w")
        .with_arguments(object(json!({"tag": "gives up"})));
    let limits = Limits::new()
        .with_connect(ms(100))
        .with_total(ms(200))
        .with_max_retries(0);
    let failure = agent.send(gives_up.with_limits(limits)).await.unwrap_err();
    assert!(!failure.may_have_run(), "{failure}");

    assert!(renews.await.unwrap().unwrap().is_live());
    assert_eq!(text(&late.await.unwrap().unwrap().value), "late");
    assert!(
        agent
            .call("r", json!({"tag": "after"}))
            .await
            .unwrap()
            .is_live()
    );
    let session = |tag: &str| {
        let calls = place.requests("tools/call");
        let last = calls
            .into_iter()
            .rfind(|seen| seen.tag.as_deref() == Some(tag));
        last.unwrap().session().unwrap().to_owned()
    };
    assert_ne!(session("late"), session("after"));
    assert_eq!(session("renews"), session("after"), "the new one stays");
    assert_eq!(place.stage.executed("gives up"), 0);
    assert_eq!(place.probe.received("initialize"), 2);
    place.end().await;
}

#[tokio::test]
async fn e05_a_401_on_the_way_back_is_told_and_not_repeated_http() {
    let challenge = "Bearer realm=\"probe\"";
    for forgets_first in [false, true] {
        let place = Place::enter(json!({"challenge": challenge, "token": "old"})).await;
        let headers = json!({"headers": {"Authorization": "Bearer old"}});
        let agent = place.agent(headers).await;
        place
            .probe
            .change(|knobs| knobs.token = Some("new".to_owned()));
        if forgets_first {
            // Then a 404 comes first, and the 401 answers the handshake.
            place.faults(json!([{"on": ["tools/call"], "status": 404}]));
        }

        let begun = Instant::now();
        let failure = agent.call("w", json!({"tag": "w"})).await.unwrap_err();

        assert_eq!(failure.class(), Class::Answered, "{failure}");
        assert!(begun.elapsed() < SOON);
        assert_eq!(place.stage.executed("w"), 0);
        let refused = failure
            .find_source::<steadfast::pool::HttpRefused>()
            .unwrap();
        assert_eq!(
            (refused.status(), refused.challenge()),
            (401, Some(challenge))
        );
        assert!(!failure.to_string().contains("old"), "{failure}");
        assert!(place.probe.received("initialize") <= 2);
        assert!(place.requests("tools/call").len() <= 1);
        assert_ne!(agent.circuit(), Some(State::Open));
        place.end().await;
    }
}

#[tokio::test]
async fn e06_a_session_that_is_always_expired_is_not_renewed_in_a_loop_http() {
    // The delays of the default, that is: at once, then a second, two, four …
    let settings = pool_settings().with_respawn_remote(Respawn::remote());
    let place = Place::with(&json!({}), settings).await;
    let agent = place.agent_with(json!({}), quick().without_breaker()).await;
    let before = place.probe.requests().len();
    place.faults(json!([{"except": ["initialize"], "status": 404}]));

    let begun = Instant::now();
    let mut failures = Vec::new();
    for number in 0..10 {
        let one = place.probe.requests().len();
        let failure = agent.call("w", json!({"tag": "w"})).await.unwrap_err();
        assert_eq!(failure.class(), Class::NotSent, "{failure}");
        let calls = place.probe.requests()[one..]
            .iter()
            .filter(|seen| seen.method == "POST")
            .count();
        println!("call {number}: {calls} requests: {failure}");
        failures.push(failure);
    }

    let took = begun.elapsed();
    let initializes = place.probe.received("initialize") - 1;
    // After a second at the earliest, then after two more, after four …
    let allowed =
        2 + usize::from(took > secs(1)) + usize::from(took > secs(3)) + usize::from(took > secs(7));
    assert!(initializes <= allowed, "{initializes} in {took:?}");
    let requests = place.probe.requests().len() - before;
    assert!(requests <= 4 * 10, "{requests} requests for ten calls");
    assert!(
        failures.last().unwrap().retry_in().is_some(),
        "it says when to come back"
    );
    assert_eq!(place.stage.executed("w"), 0);
    place.end().await;
}

#[tokio::test]
async fn e08_restarted_means_usable_in_every_session_http() {
    let place = Place::enter(json!({})).await;
    let config = place.config(json!({"steadfast": {"shared": true}}));
    let other = place.pool.session("b");
    let leases = [
        place.session.acquire(&config).await.unwrap(),
        other.acquire(&config).await.unwrap(),
    ];
    assert_eq!(place.probe.received("initialize"), 1);
    let names = |lease: &Lease| -> Vec<String> {
        lease
            .tools()
            .tools
            .iter()
            .map(|tool| tool.name.to_string())
            .collect()
    };
    let port = place.probe.port();
    let again = |knobs: serde_json::Value| {
        let mut knobs = knobs;
        knobs["http"] = json!({"port": port});
        HttpProbe::start(place.stage.knobs(&knobs))
    };
    place
        .probe
        .go_down(steadfast_tests::probe::Cut::Close)
        .await;

    let more = again(json!({"list": {"names": ["more"]}})).await.unwrap();
    let restarted = place.pool.restart("probe", None).await;
    assert!(restarted[0].restarted, "{restarted:?}");
    for lease in &leases {
        assert!(
            names(lease).contains(&"more".to_owned()),
            "{:?}",
            names(lease)
        );
        let agent = Agent::new(lease.clone(), once());
        assert!(agent.call("more", json!({})).await.unwrap().is_live());
    }
    drop(more);

    let broken = again(json!({"list": {"rpc_error": -32603, "rpc_message": "no list today"}}));
    let broken = broken.await.unwrap();
    let restarted = place.pool.restart("probe", None).await;
    assert!(!restarted[0].restarted, "{restarted:?}");
    let reason = restarted[0].reason.as_ref().unwrap().to_string();
    assert!(reason.contains("no list today"), "{reason}");
    drop((broken, leases, other));
    place.end().await;
}

#[tokio::test]
async fn e09_getting_a_session_back_leaves_running_calls_alone_http() {
    for format in ["json", "sse"] {
        let place = Place::enter(json!({"answers": format})).await;
        let agent = place.agent(json!({})).await;
        let runs = agent.begin(
            "w",
            json!({"tag": "runs", "delay_ms": 1500, "echo": "done"}),
        );
        place.stage.executed_soon("runs").await;
        place.probe.forget_sessions();

        assert!(
            agent
                .call("r", json!({"tag": "renews"}))
                .await
                .unwrap()
                .is_live()
        );
        assert!(!runs.is_finished());
        assert!(
            agent
                .call("w", json!({"tag": "after"}))
                .await
                .unwrap()
                .is_live()
        );

        assert_eq!(
            text(&runs.await.unwrap().unwrap().value),
            "done",
            "{format}"
        );
        assert_eq!(place.stage.executed("runs"), 1);
        assert_eq!(place.probe.received("initialize"), 2);
        place.end().await;
    }
}

#[tokio::test]
async fn orders_that_met_a_forgotten_session_run_once_each_http() {
    for answers in ["json", "sse"] {
        let place = Place::enter(json!({"answers": answers})).await;
        let agent = place.agent(json!({})).await;
        for round in 0..3 {
            place.probe.forget_sessions();
            let tags: Vec<_> = (0..10).map(|number| format!("{round}/{number}")).collect();
            let calls: Vec<_> = tags
                .iter()
                .map(|tag| agent.begin("w", json!({"tag": tag})))
                .collect();
            for call in calls {
                assert!(call.await.unwrap().unwrap().is_live(), "{answers} {round}");
            }
            for tag in tags {
                assert_eq!(place.stage.executed(&tag), 1, "{answers} {tag}");
            }
            assert_eq!(place.probe.received("initialize"), 2 + round, "{answers}");
        }
        assert_eq!(agent.circuit(), Some(State::Closed));
        place.end().await;
    }
}
