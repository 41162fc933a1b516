//! That somebody is told when processes may be left.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use steadfast::pool::PoolEvent;

use crate::{
    ALONE,
    listen::Ears,
    support::{Stage, secs},
};

#[tokio::test]
async fn a_sweep_that_cannot_read_the_process_table_warns_stdio() {
    let _alone = ALONE.lock().await;
    let ears = Ears::open();
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();
    let mut events = pool.events();
    let limit = getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(0),
        ..limit
    };
    ears.clear();

    setrlimit(Resource::Nofile, none).unwrap();
    let report = pool.drain_all(secs(5)).await;
    setrlimit(Resource::Nofile, limit).unwrap();

    let heard = ears.filtered.take();
    let line = heard.lines().find(|line| line.contains("may be left"));
    let line = line.unwrap_or_else(|| panic!("no warning: {heard}"));
    assert!(line.starts_with("WARN steadfast_pool"), "{line}");
    for told in [
        "found=\"unknown\"",
        "signalled=0",
        "cannot read the process table",
    ] {
        assert!(line.contains(told), "{told}: {line}");
    }
    let proven = heard
        .lines()
        .find(|line| line.contains("could not be proven dead"));
    assert!(
        proven.is_some_and(|line| line.contains("survivors=None")),
        "{heard}"
    );
    assert_eq!(report.forced.len(), 1, "unknown is not none: {report:?}");
    let mut closed = None;
    while let Ok(event) = events.try_recv() {
        if let PoolEvent::Closed { closed: how, .. } = event {
            closed = Some(how);
        }
    }
    assert_eq!(closed.unwrap().survivors, None);
    drop((lease, session));
    stage.ended(pool).await;
}
