//! The task that writes to the server's input.

use std::{io, sync::Arc};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tracing::debug;

use super::{Ended, Wire, exchange::Outgoing};

/// A buffer larger than this is not kept for the next message.
const KEEP: usize = 64 * 1024;

/// Writes what is queued, first in first out, until the wire is closed.
pub(super) async fn run<W>(wire: Arc<Wire>, mut input: W)
where
    W: AsyncWrite + Unpin,
{
    let mut buffer = Vec::new();
    while let Some(outgoing) = wire.next().await {
        if let Err(error) = write(&mut input, &outgoing, &mut buffer).await {
            debug!(%error, "writing to the server failed");
            wire.end(Ended::WriteFailed);
            return;
        }
        if buffer.capacity() > KEEP {
            buffer = Vec::new();
        }
    }
    // Closes the server's input: the protocol's way to ask it to end.
    let _ = input.shutdown().await;
}

async fn write<W>(input: &mut W, outgoing: &Outgoing, buffer: &mut Vec<u8>) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    buffer.clear();
    serde_json::to_writer(&mut *buffer, &outgoing.message)?;
    buffer.push(b'\n');
    let first = match input.write(buffer).await {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        taken => taken,
    };
    match (first, &outgoing.trace) {
        (Ok(taken), _) => {
            input.write_all(&buffer[taken..]).await?;
            input.flush().await
        }
        (Err(error), trace) => {
            // Refused before its first byte was taken: the request never left.
            if let Some(trace) = trace {
                trace.set_refused();
            }
            Err(error)
        }
    }
}
