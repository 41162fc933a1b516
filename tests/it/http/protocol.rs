//! Versions, servers without a stream of their own, and proxies.

use serde_json::json;
use steadfast::Class;
use steadfast_tests::probe::Cut;
use tokio::time::{Instant, sleep};

use crate::{
    place::Place,
    support::{SOON, ms, pool_settings, quick, secs, until},
};

#[tokio::test]
async fn p01_older_versions_work_and_unknown_ones_end_the_connection_once_http() {
    for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let place = Place::with(&json!({"start": {"version": version}}), pool_settings()).await;
        let agent = place.agent(json!({})).await;
        assert!(
            agent.call("w", json!({})).await.unwrap().is_live(),
            "{version}"
        );
        let call = &place.requests("tools/call")[0];
        assert_eq!(
            call.header("mcp-protocol-version"),
            Some(version),
            "what was agreed on"
        );
        place.end().await;
    }
    for start in [
        json!({"version": "1999-01-01"}),
        json!({"no_version": true}),
    ] {
        let knobs = json!({"start": start, "http": {}});
        let place = Place::with(&knobs, pool_settings()).await;
        let lease = place.session.lease(&place.config(json!({}))).unwrap();
        let agent = crate::support::Agent::new(lease, quick());
        let failure = agent.call("w", json!({})).await.unwrap_err();

        assert_eq!(failure.class(), Class::NotSent, "{start}: {failure}");
        assert!(failure.is_permanent(), "{start}: {failure}");
        assert_eq!(failure.attempts(), 1, "{start}: {failure}");
        assert_eq!(place.probe.received("initialize"), 1, "{start}");
        assert!(
            until(|| place.probe.sessions() == 0).await,
            "{start}: the session was ended"
        );
        place.end().await;
    }
}

#[tokio::test]
async fn p01_both_lifecycles_are_found_http() {
    for (lifecycle, fields, begins) in [
        ("both", json!({}), "initialize"),
        ("initialize", json!({}), "initialize"),
        ("stateless", json!({}), "server/discover"),
        (
            "both",
            json!({"protocolVersion": "2026-07-28"}),
            "server/discover",
        ),
        (
            "both",
            json!({"protocolVersion": "2025-06-18"}),
            "initialize",
        ),
    ] {
        let knobs = json!({"start": {"lifecycle": lifecycle}});
        let place = Place::with(&knobs, pool_settings()).await;
        let agent = place.agent(fields.clone()).await;
        assert!(
            agent
                .call("w", json!({"tag": "w"}))
                .await
                .unwrap()
                .is_live()
        );

        assert_eq!(place.probe.received(begins), 1, "{lifecycle} {fields}");
        let call = &place.requests("tools/call")[0];
        let later = begins == "server/discover";
        assert_eq!(call.session().is_none(), later, "{lifecycle}");
        let header = |name| call.header(name).map(str::to_owned);
        if later {
            assert_eq!(
                header("mcp-protocol-version").as_deref(),
                Some("2026-07-28")
            );
            assert_eq!(header("mcp-method").as_deref(), Some("tools/call"));
            assert_eq!(header("mcp-name").as_deref(), Some("w"));
            assert_eq!(place.probe.received("notifications/initialized"), 0);
            assert!(
                place
                    .probe
                    .requests()
                    .iter()
                    .all(|seen| seen.method == "POST")
            );
        } else {
            assert_eq!(place.probe.received("notifications/initialized"), 1);
        }
        place.end().await;
    }
    // A server of the one kind only, asked for the other.
    let knobs = json!({"start": {"lifecycle": "initialize"}});
    let place = Place::with(&knobs, pool_settings()).await;
    let config = place.config(json!({"protocolVersion": "2026-07-28"}));
    let failure = place.session.acquire(&config).await.unwrap_err();
    assert_eq!(place.probe.received("initialize"), 0, "{failure}");
    place.end().await;
}

#[tokio::test]
async fn p03_a_server_without_a_stream_of_its_own_is_a_good_server_http() {
    for fault in [
        json!({"status": 405}),
        json!({"status": 404}),
        json!({"status": 501}),
        json!({"cut": "stall"}),
        json!({"cut": "stall", "at": "begun"}),
    ] {
        let mut fault = fault;
        fault["on"] = json!(["GET"]);
        let place = Place::enter(json!({"faults": [fault]})).await;
        let agent = place.agent(json!({})).await;
        for _ in 0..5 {
            assert!(
                agent.call("w", json!({})).await.unwrap().is_live(),
                "{fault}"
            );
            sleep(ms(200)).await;
        }
        let gets = place
            .probe
            .requests()
            .iter()
            .filter(|seen| seen.method == "GET")
            .count();
        assert_eq!(gets, 1, "{fault}: it is not asked for again");
        assert_eq!(place.probe.received("initialize"), 1, "{fault}");
        let begun = Instant::now();
        place.end().await;
        assert!(
            begun.elapsed() < SOON,
            "{fault}: it does not hold up the end"
        );
    }
}

#[tokio::test]
async fn a_stream_of_its_own_that_breaks_is_opened_again_http() {
    let place = Place::enter(json!({})).await;
    let agent = place.agent(json!({})).await;
    let gets = || {
        place
            .probe
            .requests()
            .iter()
            .filter(|seen| seen.method == "GET")
            .count()
    };
    assert!(until(|| gets() == 1).await);
    place.probe.cut_all(Cut::Reset);
    assert!(until(|| gets() == 2).await, "it is opened again");

    let before = place.probe.received("tools/list");
    assert!(
        agent
            .call("w", json!({"change_list": 1}))
            .await
            .unwrap()
            .is_live()
    );
    assert!(until(|| place.probe.received("tools/list") > before).await);
    let listed = || {
        agent
            .lease
            .tools()
            .tools
            .iter()
            .any(|tool| tool.name == "added")
    };
    assert!(until(listed).await, "what it says there is heard");
    place.end().await;
}

#[tokio::test]
async fn p04_a_proxy_that_cuts_silent_connections_costs_no_silent_repeat_http() {
    for format in ["json", "sse"] {
        let place = Place::enter(json!({"answers": format, "idle_ms": 1000})).await;
        let agent = place.agent(json!({})).await;

        let begun = Instant::now();
        let silent = agent
            .call("w", json!({"tag": "silent", "delay_ms": 3000}))
            .await;
        let failure = silent.unwrap_err();
        assert_eq!(failure.class(), Class::Unknown, "{format}: {failure}");
        assert!(begun.elapsed() < secs(1) + SOON, "soon after the cut");
        assert_eq!(place.stage.executed("silent"), 1);
        assert!(failure.to_string().len() > 40, "it has a cause: {failure}");

        if format == "sse" {
            let progress = json!({"every_ms": 300});
            let told = json!({"tag": "told", "delay_ms": 2500, "progress": progress});
            assert!(agent.call("w", told).await.unwrap().is_live());
            assert_eq!(place.stage.executed("told"), 1);
        }

        // Its connections have been cut while it was idle.
        sleep(ms(2500)).await;
        let idle = agent.call("w", json!({"tag": "idle"})).await;
        assert!(
            idle.unwrap_or_else(|failure| panic!("{format}: {failure}"))
                .is_live()
        );
        assert_eq!(place.stage.executed("idle"), 1);
        place.end().await;
    }
}

#[tokio::test]
async fn a_goodbye_that_is_not_answered_holds_up_nothing_http() {
    for fault in [
        json!({"status": 405}),
        json!({"status": 500}),
        json!({"cut": "reset"}),
        json!({"cut": "stall"}),
    ] {
        let mut fault = fault;
        fault["on"] = json!(["DELETE"]);
        let place = Place::enter(json!({"faults": [fault]})).await;
        let agent = place.agent(json!({})).await;
        assert!(agent.call("w", json!({})).await.unwrap().is_live());

        let begun = Instant::now();
        let report = place.pool.drain_all(secs(10)).await;
        assert!(begun.elapsed() < secs(4), "{fault}: {report:?}");
        let requests = place.probe.requests();
        let goodbyes = requests.iter().filter(|seen| seen.method == "DELETE");
        assert_eq!(goodbyes.count(), 1, "{fault}");
        place.end().await;
    }
}
