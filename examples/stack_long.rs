//! A stack for long tasks: as long as they show a sign of life, and never a second time.
//!
//! ```text
//! cargo run --example stack_long -- mcp.json SERVER TOOL
//! ```

use std::{error::Error, time::Duration};

use steadfast::{ConfigFile, Pool, PoolSettings, Stack, fallback, timeout::long_task};
use tower::{Layer, ServiceExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, server, tool] = args.as_slice() else {
        return Err("usage: stack_long FILE SERVER TOOL".into());
    };

    // The limits come with the call, so that long and short calls go through one stack, on
    // one connection. `"long": true` in the configuration does the same for a tool.
    let stack = Stack::tools()
        .with_last_good(fallback::Settings::new().with_explicit(true))?
        .build()?;
    let pool = Pool::new(PoolSettings::default())?;
    let session = pool.session("long");
    let servers = ConfigFile::load(file);
    let lease = session.lease(servers.server(server).ok_or("no such server")?)?;
    let service = stack.layer(lease.clone());

    // An hour in all, at most a minute without progress, no retry.
    let task = lease.tool(tool.as_str());
    let task = task.with_limits(long_task(Duration::from_secs(3600)));

    let answer = service.oneshot(task).await?;
    println!("{:?}", answer.value.content);
    pool.drain_all(Duration::from_secs(10)).await;
    Ok(())
}
