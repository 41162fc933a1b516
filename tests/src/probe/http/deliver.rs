//! From a reply to bytes, with all that can happen on the way.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::super::knobs::{At, Cut, HttpFault};
use super::super::message::{METHOD_NOT_FOUND, UNSUPPORTED_VERSION};
use super::super::outbox::Out;
use super::super::pause::pause;
use super::connection::{Connection, Stop, cut};
use super::reply::{Body, Events, Reply};
use super::sessions::{ASIDE, Visit};
use super::site::Site;
use super::stream::Stream;

const FILL: usize = 64 * 1024;

/// One reply on its way out.
#[derive(Debug)]
pub(crate) struct Delivery<'a> {
    site: &'a Arc<Site>,
    connection: &'a mut Connection,
    fault: &'a HttpFault,
    is_last: bool,
}

// === impl Delivery ===

impl<'a> Delivery<'a> {
    pub(crate) fn new(
        site: &'a Arc<Site>,
        connection: &'a mut Connection,
        fault: &'a HttpFault,
    ) -> Self {
        let is_last = site.rules.read(|knobs| knobs.no_keep_alive) || fault.at == At::Unread;
        Self {
            site,
            connection,
            fault,
            is_last,
        }
    }

    pub(crate) async fn send(mut self, mut reply: Reply) -> Result<(), Stop> {
        let request = reply.request.take();
        let sent = match std::mem::replace(&mut reply.body, Body::Fill(0)) {
            Body::Bytes(bytes) => self.bytes(&reply, &bytes).await,
            Body::Fill(length) => self.fill(&reply, length).await,
            Body::Answer(stream) => {
                let visit = request.as_ref().map(|(visit, _)| Arc::clone(visit));
                self.answer(reply, visit, &stream).await
            }
            Body::Events(events) => self.events(&reply, &events).await,
        };
        if let (Err(Stop::Gone), Some((visit, id))) = (&sent, &request) {
            self.site.client_gone(visit, id);
        }
        sent
    }

    // === one body ===

    async fn answer(
        &mut self,
        mut reply: Reply,
        visit: Option<Arc<Visit>>,
        stream: &Stream,
    ) -> Result<(), Stop> {
        let mut place = 0;
        let mut is_answered = false;
        while let Some(part) = self.part(stream, place, is_answered).await? {
            place += 1;
            match &*part {
                Out::Answer(text) | Out::Torn(text) if !is_answered => {
                    is_answered = true;
                    reply.status = status(visit.as_deref(), text);
                    self.bytes(&reply, text).await?;
                }
                // What one body has no room for goes where what belongs to no request does.
                Out::Message(text) => {
                    if let Some(visit) = &visit {
                        visit.aside.push(Out::Message(text.clone()));
                    }
                }
                Out::Answer(_) | Out::Torn(_) | Out::Junk(_) | Out::Flood(_) => {}
                Out::Close => return Err(Stop::Cut(Cut::Close)),
                Out::Exit(code) => self.site.server.exit(*code),
            }
        }
        Ok(())
    }

    /// The next part; if there is none, and no answer yet, there never is one.
    async fn part(
        &mut self,
        stream: &Stream,
        place: usize,
        is_answered: bool,
    ) -> Result<Option<Arc<Out>>, Stop> {
        let part = tokio::select! {
            biased;
            part = stream.part(place) => part,
            () = self.connection.gone() => return Err(Stop::Gone),
        };
        if part.is_none() && !is_answered {
            self.connection.gone().await;
            return Err(Stop::Gone);
        }
        Ok(part)
    }

    async fn bytes(&mut self, reply: &Reply, bytes: &[u8]) -> Result<(), Stop> {
        let fault = self.fault;
        let cut_short = match (fault.cut, fault.at) {
            (Some(_), At::Begun) => Some(0),
            (Some(_), At::Half) => Some(bytes.len() / 2),
            _ => None,
        };
        let whole = match (fault.cut, cut_short) {
            (Some(Cut::End), Some(length)) => length,
            _ => bytes.len(),
        };
        self.head(reply, (!fault.chunked).then_some(whole as u64))
            .await?;
        self.pieces(&bytes[..cut_short.unwrap_or(bytes.len())])
            .await?;
        cut(self.site, self.connection, fault, fault.at_in_body()).await?;
        self.end_chunks().await
    }

    async fn fill(&mut self, reply: &Reply, length: u64) -> Result<(), Stop> {
        self.head(reply, (!self.fault.chunked).then_some(length))
            .await?;
        let chunk = [b'x'; FILL];
        let mut left = length;
        while left > 0 {
            let size = usize::try_from(left).unwrap_or(FILL).min(FILL);
            self.pieces(&chunk[..size]).await?;
            left -= size as u64;
        }
        self.end_chunks().await
    }

    async fn head(&mut self, reply: &Reply, length: Option<u64>) -> Result<(), Stop> {
        let head = reply.head(length, self.is_last);
        if self.fault.cut_at(At::Head).is_some() {
            self.connection.write(&head[..head.len() / 2]).await?;
            cut(self.site, self.connection, self.fault, At::Head).await?;
        }
        self.connection.write(&head).await
    }

    /// Writes a part of the body, in pieces if told.
    async fn pieces(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let size = self.fault.piece.map_or(bytes.len().max(1), usize::from);
        for piece in bytes.chunks(size) {
            if self.fault.chunked {
                self.chunk(piece).await?;
            } else {
                self.connection.write(piece).await?;
            }
            pause(self.fault.piece_gap_ms).await;
        }
        Ok(())
    }

    async fn chunk(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let size = format!("{:x}\r\n", bytes.len());
        let chunk = [size.as_bytes(), bytes, b"\r\n"].concat();
        self.connection.write(&chunk).await
    }

    async fn end_chunks(&mut self) -> Result<(), Stop> {
        if self.fault.chunked {
            self.connection.write(b"0\r\n\r\n").await?;
        }
        Ok(())
    }

    // === events ===

    async fn events(&mut self, reply: &Reply, events: &Events) -> Result<(), Stop> {
        self.head(reply, None).await?;
        self.prime(events).await?;
        if self.fault.cut_at(At::Begun).is_some() {
            return self.cut_events(At::Begun).await;
        }
        let mut place = events.place;
        let mut is_answered = false;
        while let Some(part) = self.part(&events.stream, place, is_answered).await? {
            place += 1;
            let id = events
                .look
                .ids
                .then(|| format!("{}-{place}", events.number));
            match &*part {
                Out::Answer(text) | Out::Torn(text) => {
                    is_answered = true;
                    let event = event(id.as_deref(), text);
                    if self.fault.cut_at(At::Half).is_some() {
                        self.event(&event[..event.len() / 2]).await?;
                        return self.cut_events(At::Half).await;
                    }
                    self.event(&event).await?;
                }
                Out::Message(text) => self.event(&event(id.as_deref(), text)).await?,
                Out::Junk(line) => self.event(format!("{line}\n\n").as_bytes()).await?,
                Out::Flood(bytes) => self.flood(*bytes).await?,
                Out::Close => return Err(Stop::Cut(Cut::Close)),
                Out::Exit(code) => self.site.server.exit(*code),
            }
            if events.number == ASIDE {
                events.visit.aside_place.store(place, Ordering::Relaxed);
            }
        }
        events.visit.delivered(events.number);
        self.connection.write(b"0\r\n\r\n").await
    }

    async fn prime(&mut self, events: &Events) -> Result<(), Stop> {
        let mut first = String::new();
        if let Some(ms) = events.look.retry_ms {
            first.push_str(&format!("retry: {ms}\n"));
        }
        if events.look.priming {
            first.push_str(&format!("id: {}-{}\ndata:\n", events.number, events.place));
        }
        if first.is_empty() {
            return Ok(());
        }
        first.push('\n');
        self.event(first.as_bytes()).await
    }

    async fn cut_events(&mut self, at: At) -> Result<(), Stop> {
        cut(self.site, self.connection, self.fault, at).await?;
        self.connection.write(b"0\r\n\r\n").await
    }

    async fn event(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let size = self.fault.piece.map_or(bytes.len().max(1), usize::from);
        for piece in bytes.chunks(size) {
            self.chunk(piece).await?;
            pause(self.fault.piece_gap_ms).await;
        }
        Ok(())
    }

    async fn flood(&mut self, bytes: u64) -> Result<(), Stop> {
        let mut left = bytes;
        while left > 0 {
            let size = usize::try_from(left).unwrap_or(FILL).min(FILL);
            self.chunk(&vec![b'x'; size]).await?;
            left -= size as u64;
        }
        self.chunk(b"\n\n").await
    }
}

fn event(id: Option<&str>, text: &[u8]) -> Vec<u8> {
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    [id.as_bytes(), b"event: message\ndata: ", text, b"\n\n"].concat()
}

/// The status that goes with an answer.
fn status(visit: Option<&Visit>, text: &[u8]) -> u16 {
    if !visit.is_some_and(|visit| visit.is_stateless) {
        return 200;
    }
    let answer: Value = serde_json::from_slice(text).unwrap_or_default();
    match answer.pointer("/error/code").and_then(Value::as_i64) {
        Some(METHOD_NOT_FOUND) => 404,
        Some(UNSUPPORTED_VERSION) => 400,
        _ => 200,
    }
}
