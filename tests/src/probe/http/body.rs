//! The body of a request.

use std::io;

use super::connection::Connection;
use super::head::{Head, invalid};

/// The longest body that is read.
const MAX_BODY: usize = 64 << 20;

/// Reads the body that `head` announces.
pub(crate) async fn read(connection: &mut Connection, head: &Head) -> io::Result<Vec<u8>> {
    if head.says("transfer-encoding", "chunked") {
        return read_chunks(connection).await;
    }
    let length = match head.header("content-length") {
        Some(length) => length.trim().parse().map_err(invalid)?,
        None => 0,
    };
    connection.take(bounded(length)?).await
}

async fn read_chunks(connection: &mut Connection) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = connection.line().await?;
        let (size, _) = line.split_once(';').unwrap_or((&line, ""));
        let size = usize::from_str_radix(size.trim(), 16).map_err(invalid)?;
        body.extend(connection.take(bounded(size)?).await?);
        bounded(body.len())?;
        // The line end after the chunk; after the last one, the end of no trailers.
        connection.line().await?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn bounded(length: usize) -> io::Result<usize> {
    if length > MAX_BODY {
        return Err(invalid("the body is too long"));
    }
    Ok(length)
}
