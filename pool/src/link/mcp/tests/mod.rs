//! Our wire and `rmcp` against a scripted server in memory, on a paused clock.

mod asks;
mod calls;
mod flaws;
mod lists;
mod progress;
mod script;
mod storm;
mod tasks;
mod user;

use std::{sync::Arc, time::Duration};

use futures::future::{BoxFuture, FutureExt as _};
use rmcp::{
    ServiceExt as _,
    model::{Implementation, ProtocolVersion},
};
use serde_json::{Value, json};
use tokio::{io, time::Instant};

use super::{Client, McpLink};
use crate::{
    Connect, Host, Link, Pool, PoolSettings, ServerConfig,
    link::server::{Farewell, Server},
    process::Grace,
    wire::{Framing, Wire},
};
use script::Script;

/// Makes connections to one scripted server.
#[derive(Debug)]
struct Scripted(Script);

impl Connect for Scripted {
    fn connect(
        &self,
        _: &ServerConfig,
        _: Instant,
        host: &Host,
    ) -> BoxFuture<'static, Result<Arc<dyn Link>, steadfast_classify::Failure>> {
        let script = self.0.clone();
        let host = host.clone();
        async move { Ok(connect_to(&script, &host).await as Arc<dyn Link>) }.boxed()
    }
}

async fn connect(script: &Script) -> Arc<McpLink> {
    connect_to(script, &Host::default()).await
}

async fn connect_to(script: &Script, host: &Host) -> Arc<McpLink> {
    let (ours, theirs) = io::duplex(64 * 1024);
    script.serve(theirs);
    let (output, input) = io::split(ours);
    let (wire, tasks, transport) = Wire::start(output, input, Framing::new(1 << 20));
    let us = Implementation::new("test", "1");
    let version = ProtocolVersion::LATEST_WITH_INITIALIZE;
    let client = Client::new(host, us, version, &wire);
    let running = client.serve(transport).await.expect("a handshake");
    McpLink::new(
        running,
        wire,
        tasks,
        Server::Remote(Farewell::default()),
        Grace::default(),
    )
}

fn pool(script: &Script) -> Pool {
    let connector = Scripted(script.clone());
    Pool::with_connector(PoolSettings::default(), connector).expect("sensible settings")
}

fn server() -> ServerConfig {
    let config = ServerConfig::stdio("scripted", "none");
    config.build().expect("a good configuration")
}

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
