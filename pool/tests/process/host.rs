//! The host dies in a way that it cannot handle. For that this test binary is started again as a
//! host of its own.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{WaitOptions, wait};
use steadfast_pool::process::{Exit, Spec, Step, spawn};
use tokio::time::{Instant, sleep};

use super::support::{STDERR_LIMIT, Stage, alive, kill, short, until};

/// What the host does, if this is set.
const PART: &str = "STEADFAST_TEST_PART";

const IGNORES_ALL: &str = "trap '' TERM; exec $HANG";
const BEHIND_A_WRAPPER: &str = "exec 3<&0; sh -c 'trap \"\" TERM; $HANG; : '$0 <&3 & wait; exit 1";
const LEFT_THE_GROUP: &str = "(trap '' TERM; setsid $HANG & exec $HANG)";
const WIPED: &str = "trap '' TERM; exec env -i $HANG";
const FLUSHES_ON_EOF: &str = "trap 'echo signal >> log' TERM; cat; sleep 0.5; echo bye >> log";

#[tokio::test]
async fn i11_nothing_outlives_a_killed_host_process() {
    let stage = Stage::enter().await;
    let host = Host::start(&stage, "serves");

    host.is_killed();

    assert!(
        within_five_seconds(|| alive(&host.mark).is_empty()).await,
        "{:?}",
        alive(&host.mark)
    );
    assert!(until(|| !is_running(host.watchdog)).await);
}

#[tokio::test]
async fn i11_a_watchdog_that_was_killed_is_replaced_by_one_that_knows_all_groups_process() {
    let stage = Stage::enter().await;
    let host = Host::start(&stage, "loses its watchdog");

    host.is_killed();

    assert!(
        within_five_seconds(|| alive(&host.mark).is_empty()).await,
        "{:?}",
        alive(&host.mark)
    );
    assert!(until(|| !is_running(host.watchdog)).await);
}

#[tokio::test]
async fn a_server_that_ends_on_eof_gets_time_to_flush_when_its_host_is_killed() {
    let stage = Stage::enter().await;
    let host = Host::start(&stage, "flushes");

    host.is_killed();

    assert!(
        within_five_seconds(|| alive(&host.mark).is_empty()).await,
        "{:?}",
        alive(&host.mark)
    );
    assert_eq!(fs::read_to_string(&host.log).unwrap(), "bye\n");
}

#[tokio::test]
async fn without_an_sh_servers_run_unguarded() {
    let stage = Stage::enter().await;

    let host = Host::start(&stage, "has no sh");

    assert_eq!(host.watchdog, 0);
    assert_eq!(alive(&host.mark).len(), 1);
}

#[tokio::test]
async fn i12_without_a_free_descriptor_the_group_ends_all_the_same_process() {
    let stage = Stage::enter().await;

    let host = Host::start(&stage, "has no descriptors left");

    assert!(
        until(|| alive(&host.mark).is_empty()).await,
        "{:?}",
        alive(&host.mark)
    );
}

#[tokio::test]
async fn a_host_that_waits_for_every_child_still_ends_its_servers_by_their_marks() {
    let stage = Stage::enter().await;

    let host = Host::start(&stage, "waits for every child");

    assert_eq!(alive(&host.mark).len(), 1);
}

#[test]
#[ignore = "the tests above start it as a process of its own"]
fn plays_the_host() {
    let part = env::var(PART).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { play(&part).await });
}

async fn play(part: &str) {
    let stage = Stage::enter().await;
    let _servers = match part {
        "serves" | "loses its watchdog" => {
            let gone = stage.start_tree("$HANG & cat", 1, 1).await;
            gone.process.shutdown(short()).await;
            let mut servers = vec![stage.start_tree(IGNORES_ALL, 0, 1).await];
            servers.push(stage.start_tree("cat", 1, 1).await);
            servers.push(stage.start_tree(BEHIND_A_WRAPPER, 3, 2).await);
            servers.push(stage.start_tree(LEFT_THE_GROUP, 4, 4).await);
            servers.push(stage.start_tree(WIPED, 4, 5).await);
            servers
        }
        "flushes" => vec![stage.start_tree(FLUSHES_ON_EOF, 1, 0).await],
        "has no sh" => {
            let spec = Spec::new("/bin/sh").with_args(["-c", "read line", &stage.mark]);
            vec![spawn(&spec, &stage.watchdog, STDERR_LIMIT).unwrap()]
        }
        "waits for every child" => return as_process_1(&stage).await,
        "has no descriptors left" => return without_descriptors(&stage).await,
        other => panic!("no such part: {other}"),
    };
    if part == "loses its watchdog" {
        let first = stage.watchdog.pid().unwrap();
        kill(first, "KILL");
        assert!(until(|| stage.watchdog.pid().is_some_and(|pid| pid != first)).await);
    }
    tell(&stage);
    sleep(Duration::from_secs(60)).await;
}

async fn without_descriptors(stage: &Stage) {
    let server = stage
        .start_tree("(trap '' TERM; exec $HANG) & cat", 1, 1)
        .await;
    let mut files = Vec::new();
    drop(server.stdin);
    server.process.exited().await;
    while let Ok(file) = fs::File::open("/dev/null") {
        files.push(file);
    }

    let end = server.process.shutdown(short()).await;
    drop(files);

    assert_eq!(
        (end.step, end.sweep.found, end.survivors),
        (Step::Kill, None, None)
    );
    assert!(
        end.sweep
            .error
            .is_some_and(|error| error.contains("process table"))
    );
    assert!(end.took < Duration::from_secs(4), "{:?}", end.took);
    tell(stage);
    sleep(Duration::from_secs(60)).await;
}

/// A host that is process 1 of a container has to collect every orphan, and takes our children too.
async fn as_process_1(stage: &Stage) {
    thread::spawn(|| {
        loop {
            let _ = wait(WaitOptions::empty());
            thread::sleep(Duration::from_millis(5));
        }
    });
    let server = stage
        .start_tree("$HANG & setsid $HANG & exec $HANG", 0, 3)
        .await;
    let leader = server.process.pid();
    kill(leader, "KILL");
    assert!(until(|| !fs::exists(format!("/proc/{leader}")).unwrap()).await);

    assert_eq!(server.process.exited().await, Exit::Unknown);
    let end = server.process.shutdown(short()).await;

    assert_eq!((end.exit, end.survivors), (Some(Exit::Unknown), Some(0)));
    assert!(stage.alive().is_empty(), "{:?}", stage.alive());
    let _last = stage.start_tree("exec $HANG", 0, 1).await;
    tell(stage);
    sleep(Duration::from_secs(60)).await;
}

fn tell(stage: &Stage) {
    let watchdog = stage.watchdog.pid().unwrap_or(0);
    println!(
        "\nplaying {} {watchdog} {}",
        stage.mark,
        stage.file("log").display()
    );
}

/// A host of its own, and what it told of itself.
struct Host {
    child: Child,
    mark: String,
    watchdog: u32,
    log: String,
}

impl Host {
    fn start(stage: &Stage, part: &str) -> Self {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""])
            .arg(env::current_exe().unwrap())
            .args([
                "--exact",
                "host::plays_the_host",
                "--ignored",
                "--nocapture",
            ])
            .env(PART, part)
            .env("TMPDIR", stage.file(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if part == "has no sh" {
            command.env("PATH", "/nonexistent");
        }
        let mut host = Self {
            child: command.spawn().unwrap(),
            mark: "not known yet".to_owned(),
            watchdog: 0,
            log: String::new(),
        };
        let mut lines = BufReader::new(host.child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let told = lines.find(|line| line.starts_with("playing "));
        let told = told.expect("the host failed; see its output");
        let mut words = told.split(' ').skip(1).map(str::to_owned);
        let mut word = || words.next().unwrap();
        (host.mark, host.watchdog, host.log) = (word(), word().parse().unwrap(), word());
        host
    }

    fn is_killed(&self) {
        assert!(!alive(&self.mark).is_empty());
        kill(self.child.id(), "KILL");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for seen in alive(&self.mark) {
            kill(seen.pid, "KILL");
        }
    }
}

async fn within_five_seconds(done: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(5);
    while !done() && Instant::now() < end {
        sleep(Duration::from_millis(20)).await;
    }
    done()
}

fn is_running(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|args| !args.is_empty())
}
