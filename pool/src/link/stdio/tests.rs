//! A real server whose pool is told lies about which processes there are.

use std::{
    process::{Child, Command},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use super::*;
use crate::{
    DrainReport, Pool, PoolSettings,
    process::{Identity, ProcessTable, Row},
};

/// Answers what is asked in a start, and ends with its input.
const SERVER: &str = r#"
    answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
    while read -r line; do
        id=${line#*\"id\":}; id=${id%%[,\}]*}
        case $line in
            *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
            *'"tools/list"'*) answer '{"tools":[]}' ;;
        esac
    done
"#;

/// A process of somebody else.
struct Stranger(Child);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i08_a_stranger_with_a_pid_that_was_ours_is_never_signalled_stdio() {
    let mut stranger = Stranger::start();
    let pid = stranger.0.id();

    let report = drained(move |leader| {
        let stranger = row(pid, leader, leader, u64::MAX);
        vec![
            // The leader's pid belongs to somebody else: its group is not ours.
            row(leader, 1, leader, u64::MAX - 1),
            // And this one carried our mark before it was somebody else.
            Row {
                mark: Some(0),
                ..stranger
            },
        ]
    })
    .await;

    let ended = stranger.0.try_wait().expect("a child");
    assert_eq!(ended, None, "the stranger was signalled");
    // That something of this kind is still there is told, and not hidden.
    assert_eq!(report.forced[0].survivors, Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i08_a_loop_and_300_descendants_end_in_bounded_time_and_are_reported_stdio() {
    let report = drained(|leader| {
        // Pids that nobody can have.
        let one = |n: u32| row(5_000_000 + n, leader, 5_000_000 + n, u64::MAX);
        let looped = |pid, ppid| Row {
            mark: Some(0),
            ..row(pid, ppid, pid, u64::MAX)
        };
        let mut rows: Vec<_> = (0..300).map(one).collect();
        rows.push(looped(5_000_400, 5_000_401));
        rows.push(looped(5_000_401, 5_000_400));
        // As old as everything: the descendants of its pid are not ours, the marked are.
        rows.push(row(leader, 1, leader, 0));
        rows.extend((0..300).map(|n| looped(5_001_000 + n, 1)));
        rows
    })
    .await;

    assert!(report.took < Duration::from_secs(5), "{:?}", report.took);
    assert_eq!(report.forced[0].survivors, Some(302));
}

/// A pool that was drained, and what it was told that there is instead of the truth.
async fn drained(rows: impl Fn(u32) -> Vec<Row> + Send + Sync + 'static) -> DrainReport {
    let leader = Arc::new(AtomicU32::new(0));
    let known = Arc::clone(&leader);
    let lies = move |_: u64, _: &[u8]| {
        let rows = rows(known.load(Ordering::SeqCst));
        Ok(ProcessTable::new(rows))
    };
    let step = Duration::from_millis(300);
    let grace = Grace::new(step, step, step);
    let connector = StdioConnect::guarded_by(Watchdog::looking_with(lies), grace);
    let settings = PoolSettings::default().with_closing(grace);
    let pool = Pool::with_connector(settings, connector).expect("good settings");
    let config = ServerConfig::stdio("liar", "sh").arg("-c").arg(SERVER);
    let config = config.build().expect("a good configuration");
    let session = pool.session("s");
    let lease = session.acquire(&config).await.expect("it starts");
    let pid = pool.snapshot().servers["liar"].entry_summary[0].pid;
    leader.store(pid.expect("a process"), Ordering::SeqCst);

    let report = pool.drain_all(Duration::from_secs(5)).await;

    drop((lease, session));
    report
}

fn row(pid: u32, ppid: u32, pgid: u32, start: u64) -> Row {
    Row {
        id: Identity { pid, start },
        ppid,
        pgid,
        dead: false,
        mark: None,
    }
}

// === impl Stranger ===

impl Stranger {
    fn start() -> Self {
        let mut command = Command::new("sleep");
        Self(command.arg("99").spawn().expect("it starts"))
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
