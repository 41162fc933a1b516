//! Keys of configurations, one by one.

use std::collections::{HashMap, HashSet};

use steadfast_pool::{ConfigFile, Key, ServerConfig};

const OAUTH: &str = r#""clientId": "i", "clientSecret": "s", "audiences": ["a"],
    "redirectUri": "r", "tokenParamName": "p", "registrationUrl": "g",
    "scopes": ["x"], "authorizationUrl": "u", "tokenUrl": "t""#;

#[test]
fn the_same_text_gives_the_same_key() {
    let entry = r#"{"command": "c", "args": ["a"], "env": {"E": "1"}, "cwd": "/", "timeout": 9}"#;

    assert_eq!(key(entry), key(entry));
    let keys = HashMap::from([(key(entry), 1)]);
    assert_eq!(keys.get(&key(entry)), Some(&1));
}

#[test]
fn what_means_the_same_has_one_key() {
    for same in [
        vec![
            r#"{"command": "c", "env": {"A": "1", "B": "2"}}"#,
            r#"{"env": {"B": "2", "A": "1"}, "command": "c"}"#,
        ],
        vec![
            r#"{"command": "c"}"#,
            r#"{"command": "c", "type": "stdio"}"#,
            r#"{"command": "c", "args": [], "env": {}, "cwd": ""}"#,
            r#"{"command": "c", "args": null, "env": null, "cwd": null, "timeout": null}"#,
            r#"{"command": "c", "url": "", "httpUrl": null, "targetAudience": ""}"#,
        ],
        vec![
            r#"{"url": "http://h", "headers": {"X-A": "1", "X-B": "2"}}"#,
            r#"{"url": "http://h", "headers": {"x-b": "2", "x-a": "1"}}"#,
            r#"{"httpUrl": "http://h", "headers": {"x-a": "1", "X-B": "2"}}"#,
            r#"{"url": "http://h", "type": "http", "headers": {"x-a": "1", "X-B": "2"}}"#,
        ],
        vec![
            r#"{"url": "ws://h"}"#,
            r#"{"tcp": "ws://h"}"#,
            r#"{"tcp": "h"}"#,
        ],
        vec![
            r#"{"url": "http://h", "oauth": {"scopes": ["b", "a"], "audiences": ["d", "c"]}}"#,
            r#"{"url": "http://h", "oauth": {"scopes": ["a", "b", "a"], "audiences": ["c", "d"]}}"#,
            r#"{"url": "http://h", "oauth": {"enabled": true, "scopes": ["a", "b"], "audiences": ["c", "d"]}}"#,
        ],
    ] {
        let keys: HashSet<_> = same.iter().map(|entry| key(entry)).collect();
        assert_eq!(keys.len(), 1, "{same:?}");
    }
}

#[test]
fn race_v21_9_every_way_to_say_no_oauth_is_one_key() {
    let off = [
        r#"{"url": "http://h"}"#,
        r#"{"url": "http://h", "oauth": null}"#,
        r#"{"url": "http://h", "oauth": {}}"#,
        r#"{"url": "http://h", "oauth": {"enabled": false}}"#,
        r#"{"url": "http://h", "oauth": {"enabled": false, "clientId": "i", "scopes": ["s"]}}"#,
        r#"{"url": "http://h", "oauth": {"clientId": "", "scopes": [], "audiences": null}}"#,
    ];

    let keys: HashSet<_> = off.iter().map(|entry| key(entry)).collect();

    assert_eq!(keys.len(), 1);
    let on = key(r#"{"url": "http://h", "oauth": {"enabled": true}}"#);
    assert!(!keys.contains(&on));
}

#[test]
fn race_w88_every_oauth_field_splits() {
    let with = |oauth: &str| key(&format!(r#"{{"url": "http://h", "oauth": {{{oauth}}}}}"#));
    let plain = with(OAUTH);
    for (field, value, another) in [
        ("clientId", r#""i""#, r#""j""#),
        ("clientSecret", r#""s""#, r#""S""#),
        ("audiences", r#"["a"]"#, r#"["a", "b"]"#),
        ("redirectUri", r#""r""#, r#""r2""#),
        ("tokenParamName", r#""p""#, r#""q""#),
        ("registrationUrl", r#""g""#, r#""h""#),
        ("scopes", r#"["x"]"#, r#"["y"]"#),
        ("authorizationUrl", r#""u""#, r#""v""#),
        ("tokenUrl", r#""t""#, r#""t ""#),
    ] {
        let given = format!(r#""{field}": {value}"#);
        assert!(OAUTH.contains(&given), "{field}");
        let changed = |to: &str| with(&OAUTH.replace(&given, &format!(r#""{field}": {to}"#)));
        let on = r#""enabled": true"#;

        assert_ne!(changed(another), plain, "{field}");
        assert_ne!(changed("null"), plain, "{field} left out");
        assert_ne!(with(&format!("{on}, {given}")), with(on), "{field} alone");
    }
}

const STDIO: &str =
    r#"{"command": "c", "args": ["a", "b"], "env": {"A": "1"}, "cwd": "/w", "timeout": 9}"#;
const HTTP: &str = r#"{"url": "http://h/a", "headers": {"X": "1"}, "authProviderType": "p",
    "targetAudience": "a", "targetServiceAccount": "s", "protocolVersion": "2025-11-25"}"#;

/// A server, and one small change to it.
const CHANGES: &[(&str, &str, &str)] = &[
    (STDIO, r#""c""#, r#""C""#),
    (STDIO, r#"["a", "b"]"#, r#"["b", "a"]"#),
    (STDIO, r#"["a", "b"]"#, r#"["ab"]"#),
    (STDIO, r#"["a", "b"]"#, r#"["a", "b", ""]"#),
    (STDIO, r#""A": "1""#, r#""A": "2""#),
    (STDIO, r#""A": "1""#, r#""A": """#),
    (STDIO, r#""A": "1""#, r#""a": "1""#),
    (STDIO, r#""A": "1""#, r#""A1": """#),
    (STDIO, "/w", "/v"),
    (STDIO, r#""timeout": 9"#, r#""timeout": 10"#),
    (STDIO, r#", "timeout": 9"#, ""),
    (HTTP, "http://h/a", "http://h/b"),
    (HTTP, "http://h/a", "https://h/a"),
    (HTTP, "http://h/a", "ws://h/a"),
    (HTTP, r#""X": "1""#, r#""X": "2""#),
    (HTTP, r#""X": "1""#, r#""Y": "1""#),
    (HTTP, r#""X": "1""#, ""),
    (
        HTTP,
        r#""authProviderType": "p""#,
        r#""authProviderType": "q""#,
    ),
    (HTTP, "2025-11-25", "2025-06-18"),
    (HTTP, r#", "protocolVersion": "2025-11-25""#, ""),
    (HTTP, r#""targetAudience": "a""#, r#""targetAudience": "b""#),
    (
        HTTP,
        r#""targetAudience": "a""#,
        r#""targetAudience": null"#,
    ),
    (
        HTTP,
        r#""targetServiceAccount": "s""#,
        r#""targetServiceAccount": "t""#,
    ),
];

#[test]
fn race_w88_every_other_field_of_the_transport_splits() {
    for (entry, was, is) in CHANGES {
        let other = entry.replacen(was, is, 1);
        assert_ne!(other, *entry);
        assert_ne!(key(&other), key(entry), "{was} and {is}");
    }
}

#[test]
fn neighbouring_fields_do_not_run_together() {
    let with = |fields: &str| key(&format!(r#"{{"url": "http://h", {fields}}}"#));

    let texts = [
        with(r#""authProviderType": "x""#),
        with(r#""targetAudience": "x""#),
        with(r#""targetServiceAccount": "x""#),
        with(r#""oauth": {"scopes": ["x"]}"#),
        with(r#""oauth": {"audiences": ["x"]}"#),
        with(r#""oauth": {"authorizationUrl": "x"}"#),
        with(r#""oauth": {"tokenUrl": "x"}"#),
        with(r#""headers": {"x": ""}"#),
    ];

    assert_eq!(texts.iter().collect::<HashSet<_>>().len(), texts.len());
}

#[test]
fn what_sessions_may_see_differently_does_not_split() {
    let plain = key(r#"{"command": "c"}"#);
    for field in [
        r#""includeTools": ["a"]"#,
        r#""excludeTools": ["a"]"#,
        r#""trust": true"#,
        r#""description": "d""#,
        r#""discoveryTimeoutMs": 500"#,
        r#""autoApprove": ["x"]"#,
        r#""steadfast": {"shared": true, "long": true, "effect": "read_only", "cacheable": true,
            "limits": {"read_ms": 1}, "max_in_flight": 1, "idempotency": "send", "tools": {"t": {}}}"#,
    ] {
        assert_eq!(
            key(&format!(r#"{{"command": "c", {field}}}"#)),
            plain,
            "{field}"
        );
    }
}

#[test]
fn race_w21_names_are_compared_whole() {
    let names = ["a", "a::b", "a::", "::a", "a::b::c", "b"];
    let entries: Vec<_> = names
        .iter()
        .map(|name| format!(r#""{name}": {{"command": "c"}}"#))
        .collect();
    let file = ConfigFile::parse(&format!(r#"{{"mcpServers": {{{}}}}}"#, entries.join(",")));

    let keys: Vec<_> = file
        .servers()
        .iter()
        .map(|server| Key::new(server, None))
        .collect();

    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), names.len());
    assert!(keys.iter().map(|key| &**key.name()).eq(names));
}

#[test]
fn an_isolation_tag_joins_the_key() {
    let server = config(r#"{"command": "c"}"#);
    let with = |tag| Key::new(&server, tag);

    assert_eq!(with(Some("a")), with(Some("a")));
    let keys = [with(None), with(Some("")), with(Some("a")), with(Some("b"))];
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());
    assert_ne!(
        with(Some("a")),
        Key::new(&config(r#"{"command": "d"}"#), Some("a"))
    );
}

#[test]
fn race_wr6_a_key_shows_its_name_only() {
    let server = config(r#"{"command": "c", "env": {"TOKEN": "hunter2"}}"#);

    let shown = format!("{:?}", Key::new(&server, Some("tag")));

    assert_eq!(shown, r#"Key("s")"#);
    assert_eq!(
        format!("{server:?}"),
        r#"ServerConfig { name: "s", family: Stdio, .. }"#
    );
}

#[test]
fn a_clone_has_the_key_of_its_original() {
    let server = config(r#"{"command": "c"}"#);
    let before = server.clone();
    let key = Key::new(&server, None);

    assert_eq!(Key::new(&before, None), key);
    assert_eq!(key.clone(), key);
}

#[test]
fn two_servers_in_this_program_have_two_keys() {
    let server = || ServerConfig::in_process("s", async |_| {}).build().unwrap();
    let (one, other) = (server(), server());

    assert_eq!(Key::new(&one.clone(), None), Key::new(&one, None));
    assert_ne!(Key::new(&other, None), Key::new(&one, None));
    assert_ne!(key(r#"{"command": "c"}"#), Key::new(&one, None));
}

fn key(entry: &str) -> Key {
    Key::new(&config(entry), None)
}

fn config(entry: &str) -> ServerConfig {
    let file = ConfigFile::parse(&format!(r#"{{"mcpServers": {{"s": {entry}}}}}"#));
    let servers = file.into_servers();
    servers
        .unwrap_or_else(|errors| panic!("{entry}: {errors}"))
        .remove(0)
}
