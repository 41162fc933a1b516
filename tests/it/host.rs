//! A host that dies in a way that it cannot handle: this test binary, started again.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::Signal;
use serde_json::{Value, json};
use steadfast::{ConfigFile, Pool, PoolSettings, ServerConfig, Session};
use steadfast_tests::probe::{Event, EventKind, Events, Ledger};
use tokio::{task::spawn_blocking, time::sleep};

use crate::{
    marked::wrapped,
    support::{Agent, Stage, quick, secs, signal, until},
};

/// When the host says that it can be killed.
const MOMENT: &str = "STEADFAST_TEST_MOMENT";

/// The folder of the test that started it.
const FOLDER: &str = "STEADFAST_TEST_FOLDER";

/// A host of its own.
pub(crate) struct Host(Child);

// === impl Host ===

impl Host {
    /// Starts it, and returns when its server's entry has come to this moment.
    pub(crate) async fn start(stage: &Stage, moment: &str, knobs: &Value, beside: &str) -> Self {
        let file = json!({"mcpServers": {"probe": wrapped(stage, knobs, beside)}});
        fs::write(stage.path("mcp.json"), file.to_string()).unwrap();
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "host::plays_the_host",
                "--ignored",
                "--nocapture",
            ])
            .env(MOMENT, moment)
            .env(FOLDER, stage.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut host = Self(command.spawn().unwrap());
        let output = BufReader::new(host.0.stdout.take().unwrap());
        let mut lines = output.lines().map_while(Result::ok);
        let told = spawn_blocking(move || lines.any(|line| line == "kill me"));
        assert!(told.await.unwrap(), "the host failed; see its output");
        host
    }

    pub(crate) fn is_killed(&self) {
        signal(self.0.id(), Signal::KILL);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
#[ignore = "another test starts it as a process of its own"]
async fn plays_the_host() {
    let folder = env::var(FOLDER).expect("started by that test");
    let folder = Path::new(&folder);
    let servers = ConfigFile::load(folder.join("mcp.json")).into_servers();
    let server = servers.expect("a good entry").remove(0);
    let pool = Pool::new(PoolSettings::default()).unwrap();
    let session = pool.session("a");
    let moment = env::var(MOMENT).expect("started by that test");

    let told = async {
        comes(&moment, folder).await;
        println!("\nkill me");
    };
    // Neither is dropped when the other ends: that would end what is to be killed.
    tokio::join!(live(&moment, folder, &pool, &session, &server), told);
}

/// What the host does until it is killed.
async fn live(moment: &str, folder: &Path, pool: &Pool, session: &Session, server: &ServerConfig) {
    let lease = session.acquire(server).await.expect("it starts");
    match moment {
        "ready" => fs::write(folder.join("ready"), "").unwrap(),
        "calling" => drop(
            Agent::new(lease, quick())
                .call("w", json!({"stall": true}))
                .await,
        ),
        "restarting" => drop(pool.restart("probe", None).await),
        "draining" => drop(pool.drain_all(secs(30)).await),
        other => panic!("no such moment: {other}"),
    }
    sleep(secs(60)).await;
}

async fn comes(moment: &str, folder: &Path) {
    let events = |wanted: fn(&Event) -> bool| {
        let events = Events::new(folder.join("events"));
        events.entries().is_ok_and(|all| all.iter().any(wanted))
    };
    let starts = || {
        Events::new(folder.join("events"))
            .entries()
            .unwrap_or_default()
    };
    let initialized = |event: &Event| event.method.as_deref() == Some("initialize");
    let come = || match moment {
        "starting" => events(initialized),
        "calling" => Ledger::new(folder.join("ledger"))
            .count()
            .is_ok_and(|n| n > 0),
        "restarting" => starts().iter().filter(|event| initialized(event)).count() == 2,
        "draining" => events(|event| event.kind == EventKind::Eof),
        _ => folder.join("ready").exists(),
    };
    assert!(until(come).await, "{moment} does not come");
}
