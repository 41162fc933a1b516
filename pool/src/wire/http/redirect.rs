//! Where a response sends a request.

use http::{HeaderMap, StatusCode, header::LOCATION};
use reqwest::Url;

/// How many redirects of one request are followed.
pub(super) const MAX_HOPS: usize = 3;

/// Where to send the same request again. Only what keeps method and body (307 and 308)
/// and stays with the same server is followed: the request carries credentials, and may
/// be an order.
pub(super) fn next(from: &Url, status: StatusCode, headers: &HeaderMap) -> Option<Url> {
    let keeps = matches!(
        status,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let location = headers.get(LOCATION).filter(|_| keeps)?;
    let mut to = from.join(location.to_str().ok()?).ok()?;
    let same = to.scheme() == from.scheme()
        && to.host() == from.host()
        && to.port_or_known_default() == from.port_or_known_default();
    // A login in there would be the server's, not ours.
    let _ = to.set_username("").and_then(|()| to.set_password(None));
    to.set_fragment(None);
    same.then_some(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_keeps_the_method_and_the_server_is_followed() {
        let from = Url::parse("https://server.example/mcp").unwrap();
        for (status, location, want) in [
            (307, "/other", Some("https://server.example/other")),
            (308, "other?a=b", Some("https://server.example/other?a=b")),
            (
                307,
                "https://server.example:443/x",
                Some("https://server.example/x"),
            ),
            (
                307,
                "https://eve:pw@server.example/x#y",
                Some("https://server.example/x"),
            ),
            (307, "https://server.example:444/x", None),
            (307, "http://server.example/x", None),
            (307, "//eve.example/x", None),
            (307, "data:,x", None),
            (301, "/other", None),
            (302, "/other", None),
            (303, "/other", None),
            (200, "/other", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, location.parse().unwrap());
            let status = StatusCode::from_u16(status).unwrap();
            let to = next(&from, status, &headers);
            assert_eq!(to.as_ref().map(Url::as_str), want, "{status} {location}");
        }
    }
}
