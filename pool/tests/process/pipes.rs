//! Standard error, the environment, and what a failed start says.

use std::{
    ffi::OsString,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    thread,
};

use steadfast_pool::process::{Grace, InheritedEnv, Spec, spawn};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    runtime::Builder,
    time::timeout,
};

use super::support::{SOON, STDERR_LIMIT, Stage, until, zombies};

#[tokio::test]
async fn a08_ten_mebibytes_on_stderr_block_nobody_and_the_end_of_it_is_kept_process() {
    let stage = Stage::enter().await;
    let before = resident();
    let mut server = stage
        .start("yes 'one line of many' | head -n 620000 >&2; echo the end >&2; echo answered; cat");

    let mut answer = String::new();
    let read = BufReader::new(&mut server.stdout)
        .read_line(&mut answer)
        .await;

    assert_eq!((read.unwrap(), answer.as_str()), (9, "answered\n"));
    let tail = server.process.stderr_tail();
    assert!(tail.ends_with("one line of many\nthe end"), "{tail}");
    assert!(tail.starts_with("one line of many\n"), "{tail}");
    assert!(tail.len() <= STDERR_LIMIT, "{}", tail.len());
    assert!(resident() - before < 4 << 20, "{}", resident() - before);
}

#[tokio::test]
async fn m04_a_stderr_line_without_end_is_kept_bounded_process() {
    let stage = Stage::enter().await;
    let mut server = stage.start("head -c 4194304 /dev/zero | tr '\\0' x >&2; echo answered; cat");

    let answer = timeout(SOON, server.stdout.read_u8()).await;

    assert!(answer.is_ok());
    let tail = server.process.stderr_tail();
    assert_eq!(tail, "x".repeat(STDERR_LIMIT));
}

#[tokio::test]
async fn the_last_words_of_a_dead_server_are_there_as_soon_as_its_end_is_known() {
    let stage = Stage::enter().await;
    for n in 0..20 {
        let server = stage.start(&format!("echo 'fatal: {n}' >&2; exit 1"));
        let tail = server.process.stderr().clone();

        server.process.exited().await;
        assert_eq!(server.process.stderr_tail(), format!("fatal: {n}"));

        // A child that holds the pipe must not keep it open, nor the text.
        server.process.shutdown(Grace::default()).await;
        assert_eq!(tail.text(), format!("fatal: {n}"));
    }
}

#[tokio::test]
async fn a_server_that_closes_its_stderr_runs_on() {
    let stage = Stage::enter().await;
    let mut server = stage.start("echo bye >&2; exec 2>&-; echo answered; cat");

    assert!(timeout(SOON, server.stdout.read_u8()).await.is_ok());

    assert!(until(|| server.process.stderr_tail() == "bye").await);
    assert_eq!(server.process.try_exited(), None);
}

#[tokio::test]
async fn k09_a_server_sees_only_what_it_was_given_process() {
    let stage = Stage::enter().await;
    let inherited = [
        ("PATH", std::env::var("PATH").unwrap()),
        ("CANARY", "host".into()),
    ]
    .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let env = InheritedEnv::from_vars(inherited).with([("LISTED".into(), "yes".into())]);
    let spec = Spec::new("sh").with_args(["-c", "exec env"]).with_env(env);
    let mut server = spawn(&spec, &stage.watchdog, STDERR_LIMIT).unwrap();

    let mut seen = String::new();
    server.stdout.read_to_string(&mut seen).await.unwrap();

    let mut names: Vec<_> = seen
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    names.retain(|name| !matches!(*name, "PWD" | "_" | "SHLVL" | "OLDPWD")); // the shell's own
    names.sort_unstable();
    assert_eq!(names, ["LISTED", "PATH", "STEADFAST_POOL"]);
    // Set by cargo for this test, so it would be there if anything leaked.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
}

#[tokio::test]
async fn a_failed_start_says_in_one_line_what_to_change() {
    let stage = Stage::enter().await;
    let plain = file(&stage, "plain", b"text", 0o644);
    let no_program = file(&stage, "no-program", b"\x01\x02\x03", 0o755);
    let no_interpreter = file(&stage, "no-interpreter", b"#!/no/such/interpreter\n", 0o755);
    for (spec, want) in [
        (
            Spec::new("no-such-program"),
            "\"no-such-program\" not found",
        ),
        (
            Spec::new("/no/such/program"),
            "\"/no/such/program\" not found",
        ),
        (Spec::new(plain), "is not executable"),
        (Spec::new(no_program), "is not executable"),
        (Spec::new(no_interpreter), "interpreter was not found"),
        (Spec::new(stage.file("")), "is not executable"),
        (
            Spec::new("sh").with_cwd("/no/such/dir"),
            "working directory \"/no/such/dir\" not found",
        ),
        (Spec::new("s\0h"), "cannot start"),
        (
            Spec::new("sh").with_args(["x".repeat(4 << 20)]),
            "cannot start",
        ),
    ] {
        let path = [("PATH".into(), std::env::var_os("PATH").unwrap())].into();
        let error = spawn(&spec.clone().with_env(path), &stage.watchdog, 0).unwrap_err();

        let text = error.to_string();
        assert!(text.contains(want), "{text}");
        assert!(!text.contains('\n') && text.len() < 200, "{text}");
        assert!(error.is_permanent(), "{text}");
    }
}

#[test]
fn outside_a_runtime_nothing_is_started_and_nothing_panics() {
    let stage = Stage::enter_blocking();
    let error = spawn(&stage.sh("$HANG"), &stage.watchdog, 0).unwrap_err();

    assert!(
        error.to_string().contains("outside a tokio runtime"),
        "{error}"
    );
    assert!(!error.is_permanent());
    assert!(stage.alive().is_empty());
}

#[test]
fn a_runtime_without_io_panics_and_no_process_is_left() {
    let stage = Stage::enter_blocking();
    let (spec, watchdog) = (stage.sh("exec $HANG"), stage.watchdog.clone());
    let with_io = Builder::new_current_thread().enable_all().build().unwrap();
    drop(with_io.block_on(stage.start_tree("exec $HANG", 0, 1))); // starts the watchdog
    let without_io = Builder::new_current_thread().build().unwrap();

    let run = thread::spawn(move || without_io.block_on(async { spawn(&spec, &watchdog, 0) }));

    assert!(run.join().is_err());
    assert!(with_io.block_on(stage.gone()), "{:?}", stage.alive());
    assert!(
        with_io.block_on(until(|| zombies().is_empty())),
        "{:?}",
        zombies()
    );
}

fn file(stage: &Stage, name: &str, content: &[u8], mode: u32) -> PathBuf {
    let path = stage.file(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

/// Bytes of memory that this process holds.
fn resident() -> i64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    4096 * pages.split(' ').nth(1).unwrap().parse::<i64>().unwrap()
}
