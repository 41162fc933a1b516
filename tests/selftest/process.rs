//! The real binary: exits, signals, descriptors, a grandchild.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgid, kill_process, test_kill_process};
use serde_json::{Value, json};
use steadfast_tests::probe::{Event, EventKind, Events, KNOBS_ENV, Knobs};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::driver::{Client, Files, ms};
use crate::logs::ledger;

const PROBE: &str = env!("CARGO_BIN_EXE_probe");

/// What a real process may take on a busy machine.
const SOON: Duration = Duration::from_secs(3);

/// A probe as a process; gone when dropped.
struct Process {
    child: Child,
    client: Client,
}

impl Process {
    fn start(knobs: &Knobs) -> Self {
        Self::spawn(&mut command(knobs))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let input = child.stdout.take().unwrap();
        let client = Client::new(input, child.stdin.take().unwrap());
        Self { child, client }
    }

    async fn ready(knobs: &Knobs) -> Self {
        let mut process = Self::start(knobs);
        process.client.shake_hands().await;
        process
    }

    fn pid(&self) -> Pid {
        pid(self.child.id().unwrap())
    }

    async fn ended(&mut self) -> ExitStatus {
        timeout(SOON, self.child.wait())
            .await
            .expect("ends soon")
            .unwrap()
    }
}

fn command(knobs: &Knobs) -> Command {
    let entry = knobs.server_json(Path::new(PROBE));
    let mut command = Command::new(entry["command"].as_str().unwrap());
    command
        .arg(entry["args"][0].as_str().unwrap())
        .env(KNOBS_ENV, entry["env"][KNOBS_ENV].as_str().unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    command
}

fn pid(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

fn process(knobs: &Value) -> Knobs {
    Knobs::from_json(&json!({ "process": knobs }).to_string()).unwrap()
}

#[tokio::test]
async fn wrong_knobs_end_it_with_a_reason() {
    for (arguments, reason) in [
        (["--knobs", r#"{"legder":1}"#], "unknown field `legder`"),
        (["--probe", "--nobs"], "unknown argument \"--nobs\""),
        (["--probe", "--knobs"], "--knobs needs a value"),
    ] {
        let output = Command::new(PROBE).args(arguments).output();
        let output = timeout(SOON, output).await.unwrap().unwrap();

        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(reason), "{text}");
        assert!(output.stdout.is_empty());
    }
}

#[tokio::test]
async fn knobs_on_the_command_line_replace_the_environment() {
    let environment = Knobs::from_json(r#"{"start":{"exit":5}}"#).unwrap();
    let mut process = Process::spawn(&mut command(&environment));
    assert_eq!(process.ended().await.code(), Some(5));

    let mut command = command(&environment);
    command.args(["--knobs", r#"{"start":{"exit":6}}"#]);
    let mut process = Process::spawn(&mut command);
    assert_eq!(process.ended().await.code(), Some(6));
}

#[tokio::test]
async fn it_serves_and_tells_about_itself() {
    let mut command = command(&Knobs::default());
    command.env_clear().env("CANARY", "yellow");
    let mut process = Process::spawn(&mut command);
    process.client.shake_hands().await;

    let env = process.client.call("env", json!({})).await;
    let told = process.client.call("pid", json!({})).await;

    assert_eq!(
        env["result"]["structuredContent"],
        json!({ "CANARY": "yellow" })
    );
    let told = &told["result"]["structuredContent"];
    assert_eq!(told["pid"], json!(process.child.id()));
    assert_eq!(told["parent"], std::process::id());
    process.client.output = None;
    assert_eq!(process.ended().await.code(), Some(0));
}

#[tokio::test]
async fn an_execution_is_counted_after_a_crash() {
    let files = Files::new();
    let mut process = Process::ready(&files.knobs()).await;
    let pid = process.child.id();

    process.client.begin("w", json!({ "stall": true })).await;
    process
        .client
        .begin("w", json!({ "exit_after": 137 }))
        .await;

    assert_eq!(process.ended().await.code(), Some(137));
    assert!(process.client.line().await.is_empty());
    let lines = ledger(&files);
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|line| Some(line.pid) == pid));
}

#[tokio::test]
async fn sigterm_ends_it_as_told() {
    let files = Files::new();
    let goodbye = files.path("goodbye");

    // Without a knob: as any program.
    let mut healthy = Process::ready(&Knobs::default()).await;
    kill_process(healthy.pid(), Signal::TERM).unwrap();
    let status = healthy.ended().await;
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(15)
    );

    let mut polite = Process::ready(&process(&json!({ "goodbye": goodbye }))).await;
    kill_process(polite.pid(), Signal::TERM).unwrap();
    assert_eq!(polite.ended().await.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&goodbye).unwrap(), "term\n");

    let events = files.path("events");
    let mut knobs = process(&json!({ "ignore_sigterm": true, "ignore_eof": true }));
    knobs.events = Some(events.clone());
    let mut deaf = Process::ready(&knobs).await;
    deaf.client.output = None;
    kill_process(deaf.pid(), Signal::TERM).unwrap();
    let told = |events: &[Event], kind| {
        events
            .iter()
            .any(|e: &steadfast_tests::probe::Event| e.kind == kind)
    };
    let both = |events: &[_]| told(events, EventKind::Term) && told(events, EventKind::Eof);
    Events::new(events).wait_for(SOON, both).await.unwrap();
    assert!(timeout(ms(100), deaf.child.wait()).await.is_err());
}

#[tokio::test]
async fn it_ends_by_itself_after_its_life() {
    let knobs = process(&json!({ "ignore_eof": true, "life_ms": 200 }));
    let mut process = Process::start(&knobs);
    process.client.output = None;

    assert_eq!(process.ended().await.code(), Some(0));
}

#[tokio::test]
async fn real_descriptors_close() {
    let knobs = Knobs::from_json(r#"{"wire":{"close_stdin_after":3}}"#).unwrap();
    let mut process = Process::ready(&knobs).await;

    process
        .client
        .begin("w", json!({ "close_stdout": true }))
        .await;
    let line = timeout(SOON, process.client.line()).await.unwrap();
    assert!(line.is_empty());

    let mut output = process.client.output.take().unwrap();
    let broken = async {
        loop {
            if let Err(error) = output.write_all(b"more\n").await {
                return error;
            }
            tokio::time::sleep(ms(5)).await;
        }
    };
    let error = timeout(SOON, broken).await.unwrap();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    assert!(process.child.try_wait().unwrap().is_none(), "it lives on");
}

#[tokio::test]
async fn a_helper_outlives_the_server_and_holds_stdout() {
    for (knobs, own_group, survives_term) in [
        (json!({}), false, false),
        (json!({ "setsid": true }), true, false),
        (json!({ "ignore_sigterm": true }), false, true),
    ] {
        let (mut server, helper) = with_helper(&knobs).await;
        let group = getpgid(Some(server.pid())).unwrap();
        assert_eq!(getpgid(Some(helper.0)).unwrap() != group, own_group);

        server.client.output = None;
        assert_eq!(server.ended().await.code(), Some(0));
        assert!(
            server.client.hears_nothing_for(ms(100)).await,
            "stdout is held"
        );

        kill_process(helper.0, Signal::TERM).unwrap();
        let limit = if survives_term { ms(300) } else { SOON };
        let closed = timeout(limit, server.client.input.fill_buf()).await;
        assert_eq!(closed.is_err(), survives_term, "{knobs}");
    }
}

#[tokio::test]
async fn a_quiet_helper_holds_nothing() {
    let (mut server, helper) = with_helper(&json!({ "quiet": true })).await;

    server.client.output = None;

    assert!(
        timeout(SOON, server.client.line())
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(server.ended().await.code(), Some(0));
    test_kill_process(helper.0).unwrap();
}

/// A server and the process it started.
async fn with_helper(knobs: &Value) -> (Process, Helper) {
    let files = Files::new();
    let knobs = Knobs {
        events: Some(files.path("events")),
        ..process(&json!({ "helper": knobs }))
    };
    let mut server = Process::ready(&knobs).await;
    let told = server.client.call("pid", json!({})).await;
    let helper = &told["result"]["structuredContent"]["helper"];
    let helper = u32::try_from(helper.as_u64().unwrap()).unwrap();
    let events = Events::new(files.path("events")).entries().unwrap();
    assert_eq!((events[1].kind, events[1].pid), (EventKind::Helper, helper));
    (server, Helper(pid(helper)))
}

/// A process that is killed when dropped.
struct Helper(Pid);

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = kill_process(self.0, Signal::KILL);
    }
}

#[tokio::test]
async fn stderr_is_flooded_before_each_answer() {
    const BYTES: u64 = 1 << 20;
    let knobs = json!({ "wire": { "stderr_bytes": BYTES } });
    let knobs = Knobs::from_json(&knobs.to_string()).unwrap();
    let mut process = Process::spawn(command(&knobs).stderr(Stdio::piped()));
    let mut stderr = process.child.stderr.take().unwrap();

    // Nobody reads stderr, so the answer does not come.
    process.client.request("ping", json!({})).await;
    assert!(process.client.hears_nothing_for(ms(300)).await);

    let mut lines = vec![0; usize::try_from(BYTES).unwrap() + 1];
    timeout(SOON, stderr.read_exact(&mut lines))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(process.client.next().await["id"], 1);
    assert_eq!(
        lines.split(|&byte| byte == b'\n').next().unwrap().len(),
        1023
    );

    process
        .client
        .begin("w", json!({ "stderr_line_bytes": 5_000 }))
        .await;
    let mut line = vec![0; 5_001];
    timeout(SOON, stderr.read_exact(&mut line))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(line.iter().position(|&byte| byte == b'\n'), Some(5_000));
}

#[tokio::test]
async fn it_exits_at_once_with_a_word_on_stderr() {
    let knobs = r#"{"start":{"stderr":"no licence","exit":3}}"#;
    let mut command = command(&Knobs::from_json(knobs).unwrap());

    let output = timeout(SOON, command.stderr(Stdio::piped()).output()).await;

    let output = output.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stderr, b"no licence\n");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn starting_uses_as_much_cpu_time_as_told() {
    let knobs = Knobs::from_json(r#"{"start":{"burn_ms":300}}"#).unwrap();
    let mut process = Process::start(&knobs);
    let shaken = timeout(Duration::from_secs(30), process.client.shake_hands()).await;
    shaken.expect("0.3 s of CPU time, even on a busy machine");

    let stat = format!("/proc/{}/stat", process.child.id().unwrap());
    let stat = std::fs::read_to_string(stat).unwrap();
    // Fields 14 and 15, counted from the end of the program's name, which is field 2.
    let fields = stat.rsplit(')').next().unwrap().split_whitespace();
    let ticks = fields
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().unwrap());
    assert!(ticks.sum::<u64>() >= 25, "{stat}");
}
