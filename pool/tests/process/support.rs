//! Scripted process trees, told apart from all other processes by a number in their arguments.

use std::{
    ffi::OsString,
    fs,
    path::PathBuf,
    process,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use steadfast_pool::process::{Grace, InheritedEnv, Spawned, Spec, Watchdog, spawn};
use tempfile::TempDir;
use tokio::{
    sync::{Mutex, MutexGuard},
    time::{Instant, sleep},
};

/// What "soon" means where real processes are scheduled.
pub(crate) const SOON: Duration = Duration::from_secs(3);

pub(crate) const STDERR_LIMIT: usize = 8 * 1024;

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A folder for scripts' files, and a number that all processes of one test have in their
/// arguments. Only one exists at a time. What a failed test leaves alive is killed.
pub(crate) struct Stage {
    pub(crate) watchdog: Watchdog,
    pub(crate) mark: String,
    dir: TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// One line of the process table.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) pid: u32,
    pub(crate) ppid: u32,
    pub(crate) state: String,
    pub(crate) hangs: bool,
}

impl Stage {
    pub(crate) async fn enter() -> Self {
        Self::with(ONE_AT_A_TIME.lock().await)
    }

    /// The same outside a runtime.
    pub(crate) fn enter_blocking() -> Self {
        Self::with(ONE_AT_A_TIME.blocking_lock())
    }

    fn with(alone: MutexGuard<'static, ()>) -> Self {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            watchdog: Watchdog::new(),
            mark: format!("7{:07}{n:04}", process::id()),
            dir: tempfile::tempdir().unwrap(),
            _alone: alone,
        }
    }

    /// A file in the folder of this test.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// A server that is this script. In it `$HANG` is a command that does nothing for hours, and
    /// the working directory is the folder of the test.
    pub(crate) fn sh(&self, script: &str) -> Spec {
        self.sh_with(script, [])
    }

    pub(crate) fn sh_with<const N: usize>(&self, script: &str, env: [(&str, &str); N]) -> Spec {
        let hang = format!("sleep 9999.{}", self.mark);
        let set = |(name, value): (&str, &str)| (OsString::from(name), OsString::from(value));
        let env =
            InheritedEnv::capture().with(env.map(set).into_iter().chain([set(("HANG", &hang))]));
        Spec::new("sh")
            .with_args(["-c", script, &self.mark])
            .with_env(env)
            .with_cwd(self.dir.path())
    }

    pub(crate) fn start(&self, script: &str) -> Spawned {
        spawn(&self.sh(script), &self.watchdog, STDERR_LIMIT).unwrap()
    }

    /// Starts it and waits until so many processes of this test run: shells, and `$HANG`s that have
    /// become what they are (a shell that is about to be one has not left its group yet).
    pub(crate) async fn start_tree(&self, script: &str, shells: usize, hangs: usize) -> Spawned {
        let spawned = self.start(script);
        let enough = || {
            let alive = self.alive();
            alive.len() == shells + hangs && alive.iter().filter(|seen| seen.hangs).count() == hangs
        };
        assert!(until(enough).await, "tree: {:?}", self.alive());
        spawned
    }

    /// The processes of this test that run, the watchdog apart.
    pub(crate) fn alive(&self) -> Vec<Seen> {
        alive(&self.mark)
    }

    pub(crate) async fn gone(&self) -> bool {
        until(|| self.alive().is_empty()).await
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for seen in self.alive() {
            kill(seen.pid, "KILL");
        }
    }
}

/// Short steps, for tests in which each has to be waited out.
pub(crate) fn short() -> Grace {
    let step = Duration::from_millis(300);
    Grace::new(step, step, Duration::from_secs(2))
}

/// Waits until `done`, for [`SOON`] at most.
pub(crate) async fn until(done: impl Fn() -> bool) -> bool {
    let end = Instant::now() + SOON;
    while !done() {
        if Instant::now() > end {
            return false;
        }
        sleep(Duration::from_millis(10)).await;
    }
    true
}

pub(crate) fn kill(pid: u32, signal: &str) {
    let script = format!("kill -s {signal} {pid}");
    let _ = process::Command::new("sh").args(["-c", &script]).output();
}

/// Processes with `mark` in their arguments. A zombie has no arguments any more.
pub(crate) fn alive(mark: &str) -> Vec<Seen> {
    let marked = |mut seen: Seen| {
        let args = fs::read(format!("/proc/{}/cmdline", seen.pid)).unwrap_or_default();
        seen.hangs = args.starts_with(b"sleep\0");
        let found = args.windows(mark.len()).any(|part| part == mark.as_bytes());
        found.then_some(seen)
    };
    processes().into_iter().filter_map(marked).collect()
}

/// Our own children that have ended and were not waited for.
pub(crate) fn zombies() -> Vec<Seen> {
    let ours = |seen: &Seen| seen.ppid == process::id() && seen.state == "Z";
    processes().into_iter().filter(ours).collect()
}

fn processes() -> Vec<Seen> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse().ok()
    });
    pids.filter_map(seen).collect()
}

fn seen(pid: u32) -> Option<Seen> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.to_owned();
    let ppid = fields.next()?.parse().ok()?;
    let hangs = false;
    Some(Seen {
        pid,
        ppid,
        state,
        hangs,
    })
}
