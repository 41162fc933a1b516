//! That nothing a server does over HTTP makes its client grow.

use futures::{StreamExt as _, stream};
use serde_json::json;
use steadfast::{Class, ConfigFile, Limits};
use tokio::time::sleep;

use crate::{
    ALONE,
    process::Process,
    support::{Agent, Stage, ms, object, quick, secs, until},
    usage::{descriptors, memory},
};

const MIB: usize = 1 << 20;

#[tokio::test]
async fn n03_calls_that_were_given_up_are_forgotten_http() {
    let _alone = ALONE.lock().await;
    let stage = Stage::enter().await;
    let mut left = Vec::new();
    for answers in ["json", "sse"] {
        let mute = json!({"ledger": null, "events": null, "call": {"stall": true},
            "http": {"answers": answers}});
        // Its memory is not ours.
        let server = Process::start(&stage, &mute).await;
        let file = json!({"mcpServers": {"probe": {"url": server.url}}});
        let config = ConfigFile::parse(&file.to_string()).into_servers().unwrap();
        let pool = stage.pool();
        let session = pool.session("a");
        let lease = session.acquire(&config[0]).await.unwrap();
        // An open circuit would keep the calls from the server.
        let agent = Agent::new(lease, quick().without_breaker());
        let running = || pool.snapshot().servers["probe"].entry_summary[0].in_flight;

        let mut sizes = [0; 2];
        for size in &mut sizes {
            let calls = stream::iter(0..3_000).map(|number| given_up(&agent, number));
            calls.buffer_unordered(16).count().await;
            assert!(until(|| running() == 0).await);
            // Sockets that were closed in mid-call, and the last cancels.
            sleep(ms(500)).await;
            *size = memory().0;
        }

        let [half, whole] = sizes;
        let grown = whole.abs_diff(half);
        println!(
            "n03 {answers}: {} KiB between 3,000 and 6,000",
            grown / 1024
        );
        assert!(grown <= 5 * MIB, "{answers}: from {half} to {whole} bytes");
        let restarts = pool.snapshot().servers["probe"].entry_summary[0].restarts;
        assert_eq!(restarts, 0, "{answers}");
        drop(session);
        pool.drain_all(secs(10)).await;
        server.kill().await;
        sleep(ms(100)).await;
        left.push(descriptors());
    }
    // What the runtime opened for the first stays open for the next.
    assert!(until(|| descriptors() <= left[0]).await, "{left:?}");
}

/// One call that is given up: by its own limit, or by being dropped.
async fn given_up(agent: &Agent, number: usize) {
    let call = agent.lease.tool("w").with_arguments(object(json!({})));
    if number.is_multiple_of(2) {
        let call = call.with_limits(Limits::new().with_read(ms(5)));
        let failure = agent.send(call).await.unwrap_err();
        assert_eq!(failure.class(), Class::Timeout, "{failure}");
    } else {
        tokio::select! {
            outcome = agent.send(call) => panic!("answered by a mute server: {outcome:?}"),
            () = sleep(ms(10)) => {}
        }
    }
}
