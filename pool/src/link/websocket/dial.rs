//! From a name to a TCP connection.

use std::{io, net::SocketAddr, time::Duration};

use futures::stream::{FuturesUnordered, StreamExt as _};
use socket2::{SockRef, TcpKeepalive};
use steadfast_classify::Failure;
use tokio::{
    net::{self, TcpStream},
    time,
};

use super::failure::unreachable;

/// How long an address is tried alone before the next is tried beside it (RFC 8305,
/// section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// How long a connection may be quiet before the system asks whether the other end lives.
const QUIET: Duration = Duration::from_secs(15);

/// Connects to the first address of `host` that answers.
pub(super) async fn dial(host: &str, port: u16) -> Result<TcpStream, Failure> {
    let connected = async {
        let stream = first(alternating(net::lookup_host((host, port)).await?.collect())).await?;
        // Each message is written at once, and waited for.
        stream.set_nodelay(true)?;
        // A server that is gone without a word is noticed while nobody calls it.
        SockRef::from(&stream).set_tcp_keepalive(&keepalive())?;
        Ok(stream)
    };
    connected.await.map_err(unreachable)
}

/// As `reqwest` has it: three questions without an answer end a connection.
const fn keepalive() -> TcpKeepalive {
    TcpKeepalive::new()
        .with_time(QUIET)
        .with_interval(QUIET)
        .with_retries(3)
}

/// Tries one after the other, each with a head start.
async fn first(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut left = addresses.into_iter();
    let mut tries = FuturesUnordered::new();
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        match left.next() {
            Some(address) => tries.push(TcpStream::connect(address)),
            None if tries.is_empty() => return Err(failed),
            None => {}
        }
        let head_start = time::sleep(HEAD_START);
        tokio::select! {
            Some(tried) = tries.next() => match tried {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = error,
            },
            () = head_start, if left.len() > 0 => {}
        }
    }
}

/// The addresses in their order, but of both kinds in turn: where one kind leads nowhere,
/// the second try is of the other.
fn alternating(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(preferred) = addresses.first().map(SocketAddr::is_ipv6) else {
        return addresses;
    };
    let (mut these, mut those): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv6() == preferred);
    let mut all = Vec::with_capacity(these.len() + those.len());
    these.reverse();
    those.reverse();
    while !(these.is_empty() && those.is_empty()) {
        all.extend(these.pop());
        all.extend(those.pop());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_kinds_are_tried_in_turn() {
        let parse = |list: &[&str]| -> Vec<SocketAddr> {
            list.iter().map(|text| text.parse().unwrap()).collect()
        };
        for (given, want) in [
            (&[][..], &[][..]),
            (&["1.1.1.1:1"][..], &["1.1.1.1:1"][..]),
            (
                &["[::1]:1", "[::2]:1", "1.1.1.1:1", "2.2.2.2:1", "3.3.3.3:1"][..],
                &["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "3.3.3.3:1"][..],
            ),
        ] {
            assert_eq!(alternating(parse(given)), parse(want));
        }
    }
}
