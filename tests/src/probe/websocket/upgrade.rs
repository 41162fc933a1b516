//! The request that turns HTTP into a WebSocket, and what it is answered.

use std::fmt::Write as _;
use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::super::http::{Head, Socket};
use super::super::knobs::WebSocketKnobs;

const SUBPROTOCOL: &str = "mcp";

/// Reads the head of a request, byte by byte: what follows it is not ours.
pub(crate) async fn read(socket: &mut Socket) -> io::Result<Head> {
    let mut bytes = Vec::new();
    loop {
        bytes.push(socket.read_u8().await?);
        if bytes.ends_with(b"\r\n\r\n")
            && let Some((head, _)) = Head::parse(&bytes)?
        {
            return Ok(head);
        }
    }
}

/// Answers as the knobs say, and well if it is not `faulty`. Whether there is a WebSocket now.
pub(crate) async fn answer(
    socket: &mut Socket,
    head: &Head,
    knobs: &WebSocketKnobs,
    faulty: bool,
) -> io::Result<bool> {
    if faulty && knobs.hang_up {
        return Ok(false);
    }
    if faulty && knobs.mute {
        return std::future::pending().await;
    }
    if let Some(raw) = knobs.raw.as_ref().filter(|_| faulty) {
        socket.write_all(raw.as_bytes()).await?;
        socket.flush().await?;
        return Ok(false);
    }
    let status = knobs.status.filter(|_| faulty).unwrap_or(101);
    let mut text = format!("HTTP/1.1 {status} as told\r\n");
    for (name, value) in &knobs.headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    if status == 101 {
        let key = head.header("sec-websocket-key").unwrap_or_default();
        let accept = derive_accept_key(key.as_bytes());
        let _ = write!(
            text,
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n"
        );
        if !knobs.no_subprotocol && head.says("sec-websocket-protocol", SUBPROTOCOL) {
            let _ = write!(text, "Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n");
        }
        text.push_str("\r\n");
    } else {
        let body = knobs.body.as_deref().unwrap_or_default();
        let _ = write!(text, "Content-Length: {}\r\n\r\n{body}", body.len());
    }
    socket.write_all(text.as_bytes()).await?;
    socket.flush().await?;
    Ok(status == 101)
}
