//! No secret is ever shown.

use std::error::Error;

use steadfast_pool::{ConfigFile, Endpoint, Key, OAuth, ServerConfig};

const CANARY: &str = "CANARY-7f3a";

#[test]
fn k03_no_canary_in_debug_or_display_of_configurations_and_keys() {
    let mut shown = String::new();
    let file = ConfigFile::parse_with(
        r#"{"mcpServers": {
            "files": {"command": "c", "args": ["--token", "${C}"], "env": {"TOKEN": "${C}"}, "cwd": "/w",
                      "autoApprove": ["CANARY-7f3a"]},
            "search": {"url": "https://u:${C}@h/${C}?key=${C}", "headers": {"Authorization": "Bearer ${C}"},
                       "oauth": {"clientId": "${C}", "clientSecret": "${C}", "tokenUrl": "https://t?${C}"}}}}"#,
        |_| Some(CANARY.to_owned()),
    );
    let mut oauth = OAuth::default();
    oauth.client_secret = Some(CANARY.into());
    let builder = ServerConfig::http("b", format!("https://h?{CANARY}"))
        .header("X", CANARY)
        .oauth(oauth);

    show(&mut shown, &file);
    show(&mut shown, &builder);
    for server in file.servers().iter().chain([&builder.build().unwrap()]) {
        show(&mut shown, server);
        show(&mut shown, server.endpoint());
        match server.endpoint() {
            Endpoint::Stdio(program) => show(&mut shown, program),
            Endpoint::Http(remote) | Endpoint::WebSocket(remote) => show(&mut shown, remote),
            other => panic!("{other:?}"),
        }
        show(&mut shown, server.oauth());
        show(&mut shown, Key::new(server, Some(CANARY)));
    }
    shown.extend(file.warnings().iter().map(ToString::to_string));

    assert!(
        shown.contains("files") && shown.contains("search"),
        "{shown}"
    );
    assert!(!shown.contains(CANARY), "{shown}");
}

#[test]
fn k03_no_canary_in_errors_about_values_that_hold_one() {
    let canary = |_: &str| Some(CANARY.to_owned());
    for entry in [
        r#"{"command": "c", "url": "${C}"}"#,
        r#"{"command": "${C}\u0000"}"#,
        r#"{"command": "c", "args": ["${C}\u0000"]}"#,
        r#"{"command": "c", "args": "CANARY-7f3a"}"#,
        r#"{"command": "c", "env": {"A": "${C}\u0000"}}"#,
        r#"{"command": "c", "env": {"A": "CANARY-7f3a${"}}"#,
        r#"{"command": "c", "env": {"A": "${B:-CANARY-7f3a${}"}}"#,
        r#"{"command": "c", "cwd": "${C}\u0000"}"#,
        r#"{"url": "${C}"}"#,
        r#"{"url": "${C}://h"}"#,
        r#"{"url": "http://${C}@"}"#,
        r#"{"url": "http://h/${C} x"}"#,
        r#"{"tcp": "http://${C}"}"#,
        r#"{"url": "http://h", "headers": {"X": "${C}\n"}}"#,
        r#"{"url": "http://h", "oauth": {"clientSecret": ["CANARY-7f3a"]}}"#,
        r#"{"url": "http://h", "type": "CANARY-7f3a"}"#,
        r#"{"command": "c", "trust": "CANARY-7f3a", "timeout": "CANARY-7f3a"}"#,
        r#"{"command": "c", "steadfast": {"effect": "CANARY-7f3a"}}"#,
        r#"{"command": "CANARY-7f3a"#,
    ] {
        let file =
            ConfigFile::parse_with(&format!(r#"{{"mcpServers": {{"s": {entry}}}}}"#), canary);
        let mut shown = String::new();

        let errors = file.into_servers().unwrap_err();

        show(&mut shown, &errors);
        for error in &errors {
            show(&mut shown, error);
            shown += &error.to_string();
            shown += &error.source().map(ToString::to_string).unwrap_or_default();
        }
        assert!(shown.contains("allowed"), "{entry}: {shown}");
        assert!(!shown.contains(CANARY), "{entry}: {shown}");
    }
}

fn show(shown: &mut String, value: impl std::fmt::Debug) {
    *shown += &format!("{value:?}\n{value:#?}\n");
}
