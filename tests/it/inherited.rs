//! What servers inherit of their host's environment.

use std::{
    collections::BTreeMap,
    env,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use steadfast::{Pool, PoolSettings, ServerConfig};

use crate::support::{Agent, Stage, quick};

/// A secret of the host.
const CANARY: &str = "CANARY_API_KEY";

/// What a server cannot work without.
const NEEDED: [&str; 5] = ["PATH", "HOME", "TMPDIR", "LANG", "LC_TIME"];

#[test]
fn k09_a_server_inherits_what_it_needs_and_no_secret_that_it_was_not_given_stdio() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Command::new(env::current_exe().unwrap());
    host.args([
        "--exact",
        "inherited::plays_the_host",
        "--ignored",
        "--nocapture",
    ])
    .env(CANARY, "s3cret")
    .env("HOME", "/home/of-the-host")
    .env("TMPDIR", folder.path())
    .env("LANG", "de_DE.UTF-8")
    .env("LC_TIME", "C")
    .stdin(Stdio::null());

    let output = host.output().unwrap();

    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}"
    );
}

#[tokio::test]
#[ignore = "the test above starts it as a process of its own, with an environment of its own"]
async fn plays_the_host() {
    assert_eq!(env::var(CANARY).unwrap(), "s3cret");
    let stage = Stage::enter().await;
    let pool = Pool::new(PoolSettings::default()).unwrap();

    let given_nothing = seen(&pool, &stage.server(&json!({}))).await;
    let named = json!({"env": {CANARY: format!("${{{CANARY}}}"), "LANG": "C"}});
    let given_it = seen(&pool, &stage.server_with(&json!({}), named)).await;

    assert_eq!(given_nothing.get(CANARY), None);
    assert_eq!(given_it[CANARY], "s3cret");
    assert_eq!(given_it["LANG"], "C", "what is configured wins");
    for name in NEEDED {
        assert_eq!(given_nothing[name], env::var(name).unwrap(), "{name}");
    }
    // Set by whoever runs the tests, and wanted by no server.
    assert_eq!(given_nothing.get("CARGO_MANIFEST_DIR"), None);
    stage.end(pool).await;
}

/// The environment as a server says that it has it.
async fn seen(pool: &Pool, config: &ServerConfig) -> BTreeMap<String, String> {
    let session = pool.session("a");
    let lease = session.acquire(config).await.unwrap();
    let answer = Agent::new(lease, quick()).call("env", json!({})).await;
    let seen = answer
        .unwrap()
        .value
        .structured_content
        .unwrap_or(Value::Null);
    serde_json::from_value(seen).expect("names and values")
}
