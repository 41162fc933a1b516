//! The HTTP client of one connection.

use std::{net::IpAddr, time::Duration};

use reqwest::{Client, ClientBuilder, Url, redirect, retry};

use super::Shared;

/// How long a socket may be idle and still be used again. The servers of Node and of Python
/// close theirs after 5 s, and a request that crosses that end in the middle of the way may
/// have run or not; one that needs a new socket is not in doubt.
const IDLE: Duration = Duration::from_secs(4);

/// A client for `url`, with what nothing may change.
pub(super) fn build(url: &Url, settings: &Shared) -> reqwest::Result<Client> {
    let mut builder = ClientBuilder::new().pool_idle_timeout(IDLE);
    if is_this_machine(url) {
        builder = builder.no_proxy();
        if url.scheme() == "http" {
            // Neither a proxy nor a redirect leads to elsewhere, so there is nothing to
            // encrypt, and reading the system's certificates takes a while.
            builder = builder.tls_certs_only([]);
        }
    }
    if let Some(customize) = &settings.customize {
        builder = customize(builder);
    }
    builder
        // Where a request goes, and how often, is decided where its flight is known.
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .connect_timeout(settings.connect_timeout)
        // Whether a request was begun is seen by its body, which HTTP/2 sends as it likes.
        .http1_only()
        .build()
}

/// Whether a server is on this machine: then it is not behind a proxy.
fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_every_name_it_has() {
        for (url, want) in [
            ("http://localhost:1/", true),
            ("http://LOCALHOST/", true),
            ("http://a.localhost/", true),
            ("http://127.0.0.1/", true),
            ("http://127.9.9.9/", true),
            ("http://[::1]:80/", true),
            ("http://localhost.example/", false),
            ("http://10.0.0.1/", false),
            ("http://[::2]/", false),
        ] {
            let parsed = Url::parse(url).unwrap();
            assert_eq!(is_this_machine(&parsed), want, "{url}");
        }
    }
}
