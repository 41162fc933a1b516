//! Sessions that the server forgets, and how connections begin and end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use serde_json::json;
use steadfast_classify::{Class, Phase};
use steadfast_pool::{HttpRefused, NotYet, ServerConfig};
use tokio::time::Instant;

use crate::support::{Reply, Seen, Server, Step, acquired, answer, call, config, pool, soon, text};

/// A server that, once it was told to, knows nothing of the first session.
async fn forgetful() -> (Server, Arc<AtomicBool>) {
    let forgets = Arc::new(AtomicBool::new(false));
    let seen_by = Arc::clone(&forgets);
    let server = Server::start(move |seen| {
        let old = seen.header("mcp-session-id") == Some("session-1");
        let slow = Reply::says(seen, "slow").after(Duration::from_millis(500));
        match seen.tool() {
            Some("r") => Some(slow),
            _ if old && seen_by.load(Ordering::SeqCst) => Some(Reply::status(404, &[], "")),
            _ => None,
        }
    })
    .await;
    (server, forgets)
}

#[tokio::test]
async fn e01_a_forgotten_session_is_replaced_once_for_all_http() {
    let (server, forgets) = forgetful().await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;
    forgets.store(true, Ordering::SeqCst);

    let results = join_all((0..10).map(|_| call(&lease, "w"))).await;
    for result in results {
        // Those that came late found the new one.
        if let Err(failure) = result {
            assert_eq!(failure.class(), Class::NotSent, "{failure}");
            assert!(!failure.is_permanent(), "{failure}");
        }
    }
    for result in join_all((0..10).map(|_| call(&lease, "w"))).await {
        assert_eq!(text(&result.unwrap()), "done");
    }

    let starts = server.of("initialize");
    assert_eq!(starts.len(), 2);
    assert_eq!(starts[1].header("mcp-session-id"), None);
    let last = server.of("tools/call").pop().unwrap();
    assert_eq!(last.header("mcp-session-id"), Some("session-2"));
    // There is nothing to say good-bye to.
    let gone = |seen: &Seen| seen.header("mcp-session-id") == Some("session-1");
    assert!(!server.of("DELETE").iter().any(gone));
}

/// A server of which many are: it knows one session at a time, and says 400 to any other.
async fn knows_only(session: &'static str, stream: bool) -> (Server, Arc<AtomicBool>) {
    let forgets = Arc::new(AtomicBool::new(false));
    let seen_by = Arc::clone(&forgets);
    let server = Server::start(move |seen| {
        let other = seen
            .header("mcp-session-id")
            .is_some_and(|id| id != session);
        let refused = || Reply::status(400, &[], "Bad Request: No valid session ID provided");
        match seen.kind().as_str() {
            "initialize" | "DELETE" => None,
            _ if other && seen_by.load(Ordering::SeqCst) => Some(refused()),
            // It breaks off as that of a server that is stopped.
            "GET" if stream => Some(Reply::events().end().after(Duration::from_millis(200))),
            _ => None,
        }
    })
    .await;
    (server, forgets)
}

#[tokio::test]
async fn e01_a_session_that_is_refused_with_400_is_replaced_too_http() {
    let (server, forgets) = knows_only("session-2", false).await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;
    forgets.store(true, Ordering::SeqCst);

    let failure = call(&lease, "w").await.unwrap_err();
    assert_eq!(failure.class(), Class::NotSent, "{failure}");

    assert_eq!(text(&call(&lease, "w").await.unwrap()), "done");
    assert_eq!(server.count("initialize"), 2);
    assert_eq!(server.count("ping"), 1);
}

#[tokio::test]
async fn e01_a_server_that_came_back_is_noticed_by_the_end_of_its_stream_http() {
    let (server, forgets) = knows_only("session-2", true).await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;
    server.until("GET", 1).await;
    forgets.store(true, Ordering::SeqCst);

    server.until("ping", 1).await;

    soon(async {
        while call(&lease, "w").await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(server.count("initialize"), 2);
}

#[tokio::test]
async fn g05_a_400_about_the_request_itself_leaves_the_session_alone_http() {
    let server = Server::start(|seen| {
        (seen.tool()? == "w").then(|| Reply::status(400, &[], "no such argument"))
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    let failure = call(&lease, "w").await.unwrap_err();

    assert_eq!(failure.class(), Class::Answered, "{failure}");
    assert!(
        failure.to_string().contains("no such argument"),
        "{failure}"
    );
    assert_eq!(text(&call(&lease, "r").await.unwrap()), "done");
    assert_eq!(server.count("initialize"), 1);
}

#[tokio::test]
async fn e09_a_call_in_a_forgotten_session_is_not_ended_by_us_http() {
    let (server, forgets) = forgetful().await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    let others = async {
        server.until("tools/call", 1).await;
        forgets.store(true, Ordering::SeqCst);
        assert_eq!(call(&lease, "w").await.unwrap_err().class(), Class::NotSent);
        call(&lease, "w").await.unwrap();
    };
    let (slow, ()) = tokio::join!(call(&lease, "r"), others);

    assert_eq!(text(&slow.unwrap()), "slow");
    assert_eq!(server.count("initialize"), 2);
}

#[tokio::test]
async fn e03_a_late_answer_does_not_bring_the_old_session_back_http() {
    let server = Server::start(|seen| {
        seen.tool()?;
        let body = answer(seen, "done").to_string();
        let old = [
            ("content-type", "application/json"),
            ("mcp-session-id", "session-0"),
        ];
        Some(Reply::status(200, &old, &body))
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    for _ in 0..3 {
        call(&lease, "w").await.unwrap();
    }

    for seen in server.of("tools/call") {
        assert_eq!(seen.header("mcp-session-id"), Some("session-1"));
    }
}

#[tokio::test]
async fn e06_sessions_that_are_forgotten_at_once_are_not_begun_in_a_loop_http() {
    let server = Server::start(|seen| {
        let call = seen.tool().is_some();
        call.then(|| Reply::status(404, &[], ""))
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    for _ in 0..10 {
        let failure = call(&lease, "w").await.unwrap_err();
        assert_eq!(failure.class(), Class::NotSent, "{failure}");
    }

    // The first loss is made good at once, the next ones wait.
    assert!(server.count("initialize") <= 3, "{:?}", server.kinds());
    assert!(server.count("tools/call") <= 3, "{:?}", server.kinds());
}

#[tokio::test]
async fn a_404_without_a_session_is_an_answer() {
    let server = Server::start(|seen| match seen.kind().as_str() {
        "initialize" => {
            let about = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "t", "version": "1"}});
            let id = &seen.body["id"];
            Some(Reply::json(
                &json!({"jsonrpc": "2.0", "id": id, "result": about}),
            ))
        }
        _ => (seen.tool()? == "w").then(|| Reply::status(404, &[], "")),
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    let failure = call(&lease, "w").await.unwrap_err();

    assert_eq!(failure.class(), Class::Answered, "{failure}");
    assert_eq!(text(&call(&lease, "r").await.unwrap()), "done");
    assert_eq!(server.count("initialize"), 1);
    // No session, so no stream of news and no good-bye.
    soon(pool.drain_all(Duration::from_secs(3))).await;
    assert_eq!((server.count("GET"), server.count("DELETE")), (0, 0));
}

#[tokio::test]
async fn good_bye_that_hangs_is_bounded() {
    let server =
        Server::start(|seen| (seen.verb == "DELETE").then(|| Reply::new([Step::Hang]))).await;
    let pool = pool();
    let _lease = acquired(&pool, &config(&server)).await;

    let begun = Instant::now();
    pool.drain_all(Duration::from_secs(10)).await;

    assert_eq!(server.count("DELETE"), 1);
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn f06_a_502_at_the_start_is_made_good_by_a_later_attempt_http() {
    let server = Server::start(|seen| {
        let bad = seen.kind() == "initialize" && seen.nth < 2;
        bad.then(|| Reply::status(502, &[], "bad gateway"))
    })
    .await;
    let pool = pool();
    let session = pool.session("a");

    let first = soon(session.acquire(&config(&server))).await.unwrap_err();
    assert_eq!(first.class(), Class::NotSent, "{first}");
    assert_eq!(first.phase(), Some(Phase::Connect));
    assert!(!first.is_permanent());
    let refused = first.find_source::<HttpRefused>().expect("the status");
    assert_eq!(refused.status(), 502);
    assert!(first.to_string().contains("502"), "{first}");
    let second = soon(session.acquire(&config(&server))).await.unwrap_err();
    assert_eq!(second.class(), Class::NotSent, "{second}");
    // The pause of a second before the third is waited for.
    let lease = soon(session.acquire(&config(&server))).await.unwrap();
    assert_eq!(text(&call(&lease, "w").await.unwrap()), "done");
    assert_eq!(server.count("initialize"), 3);
}

#[tokio::test]
async fn h04_nobody_tries_again_before_the_server_said_http() {
    let server = Server::start(|seen| {
        let bad = seen.kind() == "initialize" && seen.nth == 0;
        bad.then(|| Reply::status(429, &[("retry-after", "1")], ""))
    })
    .await;
    let pool = pool();
    let shared = ServerConfig::http("s", server.url()).shared(true).build();
    let shared = shared.unwrap();
    let sessions: Vec<_> = (0..20).map(|_| pool.session("a")).collect();
    let first = soon(sessions[0].acquire(&shared)).await.unwrap_err();
    assert_eq!(first.class(), Class::Overloaded, "{first}");
    assert_eq!(first.retry_after(), Some(Duration::from_secs(1)));

    let leases = soon(join_all(
        sessions.iter().map(|session| session.acquire(&shared)),
    ))
    .await;

    assert!(leases.iter().all(Result::is_ok));
    let starts = server.of("initialize");
    assert_eq!(starts.len(), 2);
    assert!(starts[1].at - starts[0].at >= Duration::from_secs(1));

    // A call does not wait for the pause: it is told how long it is.
    let other = Server::start(|seen| {
        (seen.kind() == "initialize").then(|| Reply::status(429, &[("retry-after", "9")], ""))
    })
    .await;
    let lease = sessions[0].lease(&config(&other)).unwrap();
    let first = call(&lease, "w").await.unwrap_err();
    assert_eq!(first.class(), Class::Overloaded, "{first}");
    let second = call(&lease, "w").await.unwrap_err();
    assert!(second.find_source::<NotYet>().is_some(), "{second}");
    assert!(second.retry_in() > Some(Duration::from_secs(5)), "{second}");
    assert_eq!(other.count("initialize"), 1);
}

#[tokio::test]
async fn e05_a_handshake_that_is_refused_for_want_of_a_login_is_an_answer_http() {
    let server = Server::start(|seen| {
        let challenge = ("www-authenticate", "Bearer realm=\"r\"");
        (seen.kind() == "initialize").then(|| Reply::status(401, &[challenge], ""))
    })
    .await;
    let pool = pool();
    let session = pool.session("a");

    for attempt in 1..=3 {
        let failure = soon(session.acquire(&config(&server))).await.unwrap_err();
        assert_eq!(failure.class(), Class::Answered, "{failure}");
        assert!(!failure.may_have_run(), "{failure}");
        let refused = failure.find_source::<HttpRefused>().expect("the status");
        assert_eq!(refused.challenge(), Some("Bearer realm=\"r\""));
        assert_eq!(server.count("initialize"), attempt);
    }
}

#[tokio::test]
async fn wrong_address_is_permanent_and_says_what_came() {
    for status in [404, 405, 400, 301] {
        let server = Server::start(move |_| Some(Reply::status(status, &[], "no"))).await;
        let pool = pool();
        let session = pool.session("a");
        let failure = soon(session.acquire(&config(&server))).await.unwrap_err();
        assert_eq!(failure.class(), Class::NotSent, "{failure}");
        assert!(failure.is_permanent(), "{failure}");
        assert!(
            failure.to_string().contains(&status.to_string()),
            "{failure}"
        );
    }
}

#[tokio::test]
async fn r01_a_server_that_does_not_answer_the_handshake_holds_up_no_other_http() {
    let mute = Server::start(|_| Some(Reply::new([Step::Hang]))).await;
    let (good, begun) = (Server::good().await, AtomicUsize::new(0));
    let pool = pool();
    let mute_config = ServerConfig::http("mute", mute.url())
        .discovery_timeout(Duration::from_secs(1))
        .build()
        .unwrap();
    let session = pool.session("a");
    let lease = async {
        let lease = acquired(&pool, &config(&good)).await;
        call(&lease, "w").await.unwrap();
        begun.fetch_add(1, Ordering::SeqCst);
    };

    let (failed, ()) = soon(async { tokio::join!(session.acquire(&mute_config), lease) }).await;

    let failure = failed.unwrap_err();
    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert!(failure.to_string().contains("in time"), "{failure}");
    // Nobody is told that a handshake is not wanted any more.
    assert_eq!(mute.kinds(), ["initialize"]);
    assert_eq!(begun.load(Ordering::SeqCst), 1);
}
