//! A stack for read-only tools: repeat freely, and rather an old answer than none.
//!
//! ```text
//! cargo run --example stack_reads -- mcp.json SERVER TOOL
//! ```

use std::{error::Error, time::Duration};

use steadfast::{
    ConfigFile, Effect, Pool, PoolSettings, Stack, fallback,
    retry::{self, Backoff, Jitter},
    timeout,
};
use tower::{Layer, ServiceExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, server, tool] = args.as_slice() else {
        return Err("usage: stack_reads FILE SERVER TOOL".into());
    };

    // A read is given up early, since it costs nothing to ask again; repeated quickly and,
    // by full jitter, not in step with others; and answered from up to an hour ago.
    let backoff = Backoff::new(
        Duration::from_millis(100),
        Duration::from_secs(2),
        Jitter::Full,
    )?;
    let stack = Stack::tools()
        .with_timeout(timeout::Settings::new().with_read(Duration::from_secs(10)))
        .with_total(Duration::from_secs(30))
        .with_retry(
            retry::Settings::new()
                .with_max_retries(4)
                .with_backoff(backoff),
        )
        .with_last_good(fallback::Settings::new().with_max_stale(Duration::from_secs(3600)))?
        .build()?;

    let pool = Pool::new(PoolSettings::default())?;
    let session = pool.session("reads");
    let servers = ConfigFile::load(file);
    let config = servers.server(server).ok_or("no such server")?;
    let lease = session.lease(config)?;
    // The caller vouches for it: this tool only reads, whatever its annotations say.
    let call = lease.tool(tool.as_str()).with_effect(Effect::ReadOnly);

    let answer = stack.layer(lease).oneshot(call).await?;
    println!("{}: {:?}", answer.source, answer.value.content);
    pool.drain_all(Duration::from_secs(10)).await;
    Ok(())
}
