//! Frames, as RFC 6455 has them in section 5.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

const LAST: u8 = 0x80;
const MASKED: u8 = 0x80;

/// How much of a frame is read at a time.
const CHUNK: u64 = 16 * 1024;

/// What a client sent that is no message.
#[derive(Debug, PartialEq)]
pub(crate) enum Seen {
    Ping(Vec<u8>),
    Pong,
    Close,
}

/// The head of a frame.
struct Head {
    first: u8,
    left: u64,
    mask: [u8; 4],
}

/// Passes messages on as lines, as they come, up to a frame that is about the connection.
///
/// What `lines` does not take is not read from the client either, unless it has closed.
pub(crate) async fn read<R, W>(input: &mut R, lines: &mut W) -> io::Result<Seen>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    loop {
        let mut head = Head::read(input).await?;
        match head.first & 0x0f {
            CLOSE => {
                head.payload(input).await?;
                return Ok(Seen::Close);
            }
            PING => return Ok(Seen::Ping(head.payload(input).await?)),
            PONG => {
                head.payload(input).await?;
                return Ok(Seen::Pong);
            }
            _ => {
                while head.left > 0 {
                    // A server that does not listen any more still answers pings.
                    let _ = lines.write_all(&head.piece(input).await?).await;
                }
                if head.first & LAST != 0 {
                    let _ = lines.write_all(b"\n").await;
                }
            }
        }
    }
}

// === impl Head ===

impl Head {
    async fn read<R: AsyncRead + Unpin>(input: &mut R) -> io::Result<Self> {
        let first = input.read_u8().await?;
        let second = input.read_u8().await?;
        let left = match second & !MASKED {
            126 => u64::from(input.read_u16().await?),
            127 => input.read_u64().await?,
            short => u64::from(short),
        };
        if second & MASKED == 0 {
            return Err(io::Error::other("a client has to mask its frames"));
        }
        let mut mask = [0; 4];
        input.read_exact(&mut mask).await?;
        Ok(Self { first, left, mask })
    }

    async fn piece<R: AsyncRead + Unpin>(&mut self, input: &mut R) -> io::Result<Vec<u8>> {
        let size = self.left.min(CHUNK);
        self.left -= size;
        let mut piece = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        input.read_exact(&mut piece).await?;
        // A chunk is as long as many masks, so that each begins with one.
        let keys = self.mask.iter().cycle();
        piece
            .iter_mut()
            .zip(keys)
            .for_each(|(byte, key)| *byte ^= key);
        Ok(piece)
    }

    /// All of it: a frame that is about the connection is short.
    async fn payload<R: AsyncRead + Unpin>(mut self, input: &mut R) -> io::Result<Vec<u8>> {
        self.piece(input).await
    }
}

/// One frame of a server; `last`: it ends its message.
pub(crate) fn frame(opcode: u8, last: bool, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![if last { opcode | LAST } else { opcode }];
    match payload.len() {
        short @ ..126 => bytes.push(short as u8),
        middle @ ..=0xffff => {
            bytes.push(126);
            bytes.extend((middle as u16).to_be_bytes());
        }
        long => {
            bytes.push(127);
            bytes.extend((long as u64).to_be_bytes());
        }
    }
    bytes.extend(payload);
    bytes
}

/// A message in frames of so many bytes.
pub(crate) fn message(opcode: u8, payload: &[u8], size: Option<usize>) -> Vec<u8> {
    let Some(size) = size.filter(|size| payload.len() > *size) else {
        return frame(opcode, true, payload);
    };
    let count = payload.len().div_ceil(size);
    let pieces = payload.chunks(size).enumerate().map(|(index, piece)| {
        let opcode = if index == 0 { opcode } else { 0 };
        frame(opcode, index + 1 == count, piece)
    });
    pieces.flatten().collect()
}

/// A close frame; without a code it has no body.
pub(crate) fn close(code: Option<u16>, reason: &str) -> Vec<u8> {
    let body = code.map_or_else(Vec::new, |code| {
        [&code.to_be_bytes(), reason.as_bytes()].concat()
    });
    frame(CLOSE, true, &body)
}
