//! A shutdown while the server runs.

use std::time::Duration;

use steadfast_pool::process::{Exit, Grace, Step};
use tokio::{io::AsyncReadExt as _, runtime::Builder, time::timeout};

use super::support::{SOON, Stage, short, zombies};

#[tokio::test]
async fn i06_a_server_that_flushes_on_eof_gets_no_signal_process() {
    let stage = Stage::enter().await;
    let server = stage
        .start_tree(
            "trap 'echo signal >> log' TERM INT HUP; cat; sleep 0.5; echo bye >> log",
            1,
            0,
        )
        .await;

    drop(server.stdin);
    let end = server.process.shutdown(Grace::default()).await;

    assert_eq!(stage.read("log"), "bye\n");
    assert_eq!((end.step, end.exit), (Step::Eof, Some(Exit::Code(0))));
    assert!(end.took >= Duration::from_millis(500), "{:?}", end.took);
    assert!(end.took < Grace::default().eof, "{:?}", end.took);
}

#[tokio::test]
async fn i06_a_server_that_ignores_eof_gets_sigterm_process() {
    let stage = Stage::enter().await;
    let server = stage
        .start_tree(
            "trap 'echo term >> log; exit 7' TERM; echo up; $HANG & while :; do wait; done",
            1,
            1,
        )
        .await;

    drop(server.stdin);
    let end = server.process.shutdown(short()).await;

    assert_eq!(stage.read("log"), "term\n");
    assert_eq!((end.step, end.exit), (Step::Term, Some(Exit::Code(7))));
    assert!(end.took >= short().eof, "{:?}", end.took);
}

#[tokio::test]
async fn i06_a_server_that_ignores_everything_is_killed_in_bounded_time_process() {
    let stage = Stage::enter().await;
    let server = stage.start_tree("trap '' TERM; exec $HANG", 0, 1).await;

    drop(server.stdin);
    let end = server.process.shutdown(short()).await;

    assert_eq!((end.step, end.exit), (Step::Kill, Some(Exit::Signal(9))));
    assert!(end.took >= short().eof + short().term, "{:?}", end.took);
    assert!(end.took < SOON, "{:?}", end.took);
    assert_eq!(end.survivors, Some(0));
}

#[tokio::test]
async fn i01_wrapper_server_and_a_helper_that_ignores_sigterm_all_end_process() {
    let stage = Stage::enter().await;
    let server = stage
        .start_tree(
            r#"exec 3<&0; sh -c '(trap "" TERM; exec $HANG) & cat; : '$0 <&3 & wait"#,
            2,
            1,
        )
        .await;

    drop(server.stdin);
    let end = server.process.shutdown(short()).await;

    assert_eq!(end.step, Step::Kill);
    assert_eq!(end.survivors, Some(0));
    assert!(stage.alive().is_empty(), "{:?}", stage.alive());
    assert!(zombies().is_empty(), "{:?}", zombies());
}

#[tokio::test]
async fn a_server_that_moved_to_another_group_gets_each_signal_once() {
    let stage = Stage::enter().await;
    let moves = "$| = 1; setpgrp(0, getpgrp(getppid())) or die; \
        $SIG{TERM} = sub { open(my $log, '>>', 'log'); print $log \"term\\n\"; $n++ }; \
        print \"up\\n\"; sleep 1 until $n; select(undef, undef, undef, 0.1); exit 7";
    for (script, code) in [
        (
            format!("exec perl -e '{}'", moves.replace('\'', "'\\''")),
            7,
        ),
        (
            "trap 'echo term >> log; exit 7' TERM; echo up; while :; do sleep 0.01; done".into(),
            7,
        ),
    ] {
        let mut server = stage.start(&script);
        server.stdout.read_u8().await.unwrap();

        drop(server.stdin);
        let end = server.process.shutdown(short()).await;

        assert_eq!(
            (end.step, end.exit),
            (Step::Term, Some(Exit::Code(code))),
            "{script}"
        );
        assert_eq!(end.survivors, Some(0));
    }
    assert_eq!(stage.read("log"), "term\nterm\n");
}

#[tokio::test]
async fn children_left_by_a_clean_exit_get_sigterm_at_once() {
    let stage = Stage::enter().await;
    let server = stage.start_tree("$HANG & $HANG & cat", 1, 2).await;

    drop(server.stdin);
    let end = server.process.shutdown(Grace::default()).await;

    assert_eq!((end.step, end.exit), (Step::Term, Some(Exit::Code(0))));
    assert!(stage.alive().is_empty(), "{:?}", stage.alive());
    // Not after the two seconds that the server itself would have had.
    assert!(end.took < Grace::default().eof, "{:?}", end.took);
}

#[tokio::test]
async fn with_no_time_at_all_it_is_killed_and_proven_dead() {
    let stage = Stage::enter().await;
    let server = stage
        .start_tree("trap '' TERM; $HANG & exec $HANG", 0, 2)
        .await;

    let none = Grace::default().within(Duration::ZERO);
    let end = server.process.shutdown(none).await;

    assert_eq!((end.step, end.exit), (Step::Kill, Some(Exit::Signal(9))));
    assert_eq!(end.survivors, Some(0));
}

#[test]
fn a_runtime_whose_blocking_threads_are_all_taken_still_ends_its_servers() {
    let stage = Stage::enter_blocking();
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    let (free, taken) = std::sync::mpsc::channel::<()>();
    runtime.spawn_blocking(move || taken.recv());

    let end = runtime.block_on(async {
        let server = stage.start_tree("setsid $HANG & cat", 1, 1).await;
        drop(server.stdin);
        timeout(2 * SOON, server.process.shutdown(short())).await
    });

    drop(free);
    let end = end.unwrap();
    assert_eq!((end.exit, end.sweep.found), (Some(Exit::Code(0)), Some(1)));
    assert!(stage.alive().is_empty(), "{:?}", stage.alive());
}

#[tokio::test]
async fn what_left_the_group_ends_with_the_server() {
    let stage = Stage::enter().await;
    for (case, script) in [
        ("marked", "setsid $HANG & cat"),
        (
            "marked, ignores SIGTERM",
            "(trap '' TERM; exec setsid $HANG) & cat",
        ),
        ("marked, lost its parent", "(setsid $HANG &); cat"),
        ("wiped, child of the server", "env -i setsid $HANG & cat"),
        (
            "wiped, child of a marked one",
            "(setsid sh -c \"env -i $HANG; :\" &); cat",
        ),
    ] {
        let shells = if case.ends_with("marked one") { 2 } else { 1 };
        let mut server = stage
            .start_tree(&format!("{script}; : $HANG"), shells, 1)
            .await;

        // A parent that ends first takes the proof along, if the mark is wiped.
        server.process.note_descendants().await;
        drop(server.stdin);
        let end = server.process.shutdown(short()).await;

        assert!(stage.alive().is_empty(), "{case}: {:?}", stage.alive());
        assert_eq!(end.sweep.found, Some(shells), "{case}");
        assert!(end.sweep.is_complete(), "{case}: {:?}", end.sweep);
        assert_eq!(end.survivors, Some(0), "{case}");
    }
}
