//! Names of servers and tools that look alike when they are joined.

use serde_json::{Value, json};
use steadfast::{ConfigFile, Pool, ServerConfig};
use steadfast_tests::probe::Ledger;
use tower::ServiceExt as _;

use crate::support::{Stage, object, text};

const SERVERS: [&str; 4] = ["a", "a__b", "a_", "a::b"];

#[tokio::test]
async fn l05_each_call_reaches_its_own_server_whatever_the_names_stdio() {
    let stage = Stage::enter().await;
    let long = "x".repeat(80);
    let tools = ["c", "b__c", "_c", &long];
    let servers = servers(&stage, &tools);

    for (round, order) in orders().into_iter().enumerate() {
        let pool = stage.pool();
        let session = pool.session("a");
        for server in order {
            session.acquire(&servers[server]).await.unwrap();
        }
        for server in order {
            call_all(&pool, &servers[server], &tools, round).await;
        }
        assert_eq!(
            pool.drain_all(std::time::Duration::from_secs(10))
                .await
                .forced,
            []
        );
    }

    for name in SERVERS {
        let executed = Ledger::new(stage.path(&ledger(name))).entries().unwrap();
        assert_eq!(executed.len(), 24 * tools.len(), "{name}");
        for execution in executed {
            let tag = execution.tag.unwrap();
            let (round, meant) = tag.split_once(' ').unwrap();
            assert_eq!(meant, format!("{name} {}", execution.tool), "round {round}");
        }
    }
}

/// Calls each tool of a server, which says by its echo who it is.
async fn call_all(pool: &Pool, server: &ServerConfig, tools: &[&str], round: usize) {
    let session = pool.session("b");
    let lease = session.acquire(server).await.unwrap();
    assert_eq!(lease.tools().tools.len(), tools.len());
    for tool in tools {
        let tag = format!("{round} {} {tool}", server.name());
        let arguments = object(json!({"tag": tag, "echo": tag}));
        let call = lease.tool(*tool).with_arguments(arguments);
        let answer = lease.clone().oneshot(call).await.unwrap();
        assert_eq!(text(&answer), tag);
    }
}

/// All orders of four.
fn orders() -> Vec<[usize; 4]> {
    let digits = (0..256).map(|n| [n % 4, n / 4 % 4, n / 16 % 4, n / 64]);
    let distinct = |order: &[usize; 4]| (0..4).all(|n| order.contains(&n));
    digits.filter(distinct).collect()
}

fn servers(stage: &Stage, tools: &[&str]) -> Vec<ServerConfig> {
    let entries: serde_json::Map<String, Value> = SERVERS
        .into_iter()
        .map(|name| {
            let list = json!({"names": tools, "without": ["w", "r", "i", "env", "pid"]});
            let ledger = stage.path(&ledger(name));
            let knobs = stage.knobs(&json!({"ledger": ledger, "list": list}));
            let exe = env!("CARGO_BIN_EXE_probe");
            (name.to_owned(), knobs.server_json(exe.as_ref()))
        })
        .collect();
    let file = json!({"mcpServers": entries}).to_string();
    let servers = ConfigFile::parse(&file)
        .into_servers()
        .expect("good entries");
    let of = |name| servers.iter().find(|server| &**server.name() == name);
    SERVERS.map(|name| of(name).unwrap().clone()).to_vec()
}

/// A file's name for a server's.
fn ledger(server: &str) -> String {
    let bytes: String = server.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("ledger-{bytes}")
}
