//! A stack for tools with side effects: once, or a clear word that nobody knows.
//!
//! ```text
//! cargo run --example stack_orders -- mcp.json SERVER TOOL
//! ```

use std::{error::Error, time::Duration};

use steadfast::{
    ConfigFile, Pool, PoolSettings, Stack,
    budget::{Keyed, Limit},
    fallback,
    stack::by_server,
    timeout,
};
use tower::{Layer, ServiceExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, server, tool] = args.as_slice() else {
        return Err("usage: stack_orders FILE SERVER TOOL".into());
    };

    // An order waits long for its answer, since giving up leaves its outcome unknown. No
    // server gets more than one a second. A failure stays one (`explicit`): an order that
    // was not placed must not look like an answer.
    let orders = Keyed::new(Limit::new("orders", "1/s burst 3".parse()?), by_server);
    let stack = Stack::tools()
        .with_timeout(timeout::Settings::new().with_read(Duration::from_secs(120)))
        .with_breaker_per("orders", breaker(), by_server)
        .with_admission(orders)
        .with_last_good(fallback::Settings::new().with_explicit(true))?
        .build()?;

    let pool = Pool::new(PoolSettings::default())?;
    let session = pool.session("orders");
    let servers = ConfigFile::load(file);
    let lease = session.lease(servers.server(server).ok_or("no such server")?)?;
    // Without a word about it, a tool is one that must not run twice.
    let call = lease.tool(tool.as_str());

    match stack.layer(lease).oneshot(call).await {
        Ok(answer) => println!("done: {:?}", answer.value.content),
        Err(failure) if failure.may_have_run() => println!("look whether it was done: {failure}"),
        Err(failure) => println!("not done: {failure}"),
    }
    pool.drain_all(Duration::from_secs(10)).await;
    Ok(())
}

/// A probe's lease is to be above what one order may take.
fn breaker() -> steadfast::circuit_breaker::Settings {
    steadfast::circuit_breaker::Settings::new().with_probe_lease(Duration::from_secs(150))
}
