//! What is read, and as what.

use std::{fs, path::Path, time::Duration};

use rmcp::model::ProtocolVersion;
use secrecy::ExposeSecret;
use steadfast_pool::{ConfigFile, Endpoint, Family, Program, Remote, ServerConfig};

#[test]
fn a_file_as_clients_write_it_is_read_whole() {
    let server = one(
        r#"{"command": "npx", "args": ["-y", "files"], "env": {"B": "2", "A": "1"}, "cwd": "/srv",
            "timeout": 600000, "discoveryTimeoutMs": 20000, "trust": true, "description": "files",
            "includeTools": ["read"], "excludeTools": ["write"]}"#,
    );

    let program = program(&server);
    assert_eq!(program.command, "npx");
    let args: Vec<_> = program.args.iter().map(|arg| arg.expose_secret()).collect();
    assert_eq!(args, ["-y", "files"]);
    assert_eq!(program.env["A"].expose_secret(), "1");
    assert_eq!(program.cwd.as_deref(), Some(Path::new("/srv")));
    assert_eq!(server.timeout(), Some(Duration::from_secs(600)));
    assert_eq!(server.discovery_timeout(), Some(Duration::from_secs(20)));
    assert!(server.is_trusted());
    assert_eq!(server.description(), Some("files"));
    assert!(server.filter().allows("read") && !server.filter().allows("write"));
}

#[test]
fn a_remote_server_keeps_its_headers_and_oauth() {
    let server = one(
        r#"{"url": "https://h/mcp", "headers": {"Authorization": "Bearer t"},
            "oauth": {"clientId": "id", "clientSecret": "cs", "scopes": ["b", "a"],
                      "audiences": ["x"], "authorizationUrl": "https://a", "tokenUrl": "https://t",
                      "redirectUri": "https://r", "tokenParamName": "p", "registrationUrl": "https://g"},
            "authProviderType": "google_credentials", "targetAudience": "ta",
            "targetServiceAccount": "sa", "protocolVersion": "2025-06-18"}"#,
    );

    let remote = remote(&server);
    assert_eq!(remote.url.expose_secret(), "https://h/mcp");
    assert_eq!(remote.headers["authorization"].expose_secret(), "Bearer t");
    let oauth = server.oauth().unwrap();
    let texts = [
        (&oauth.client_id, "id"),
        (&oauth.client_secret, "cs"),
        (&oauth.authorization_url, "https://a"),
        (&oauth.token_url, "https://t"),
        (&oauth.redirect_uri, "https://r"),
        (&oauth.token_param_name, "p"),
        (&oauth.registration_url, "https://g"),
    ];
    for (text, want) in texts {
        assert_eq!(text.as_ref().unwrap().expose_secret(), want);
    }
    assert!(oauth.scopes.iter().eq(["a", "b"]) && oauth.audiences.iter().eq(["x"]));
    assert_eq!(server.auth_provider_type(), Some("google_credentials"));
    assert_eq!(server.target_audience(), Some("ta"));
    assert_eq!(server.target_service_account(), Some("sa"));
    let version = server.protocol_version().map(ProtocolVersion::as_str);
    assert_eq!(version, Some("2025-06-18"));
}

#[test]
fn the_transport_follows_from_type_field_and_scheme() {
    for (json, want) in [
        (r#"{"command": "c"}"#, Family::Stdio),
        (r#"{"command": "c", "type": "stdio"}"#, Family::Stdio),
        (r#"{"command": "c", "url": null}"#, Family::Stdio),
        (r#"{"command": "", "url": "http://h"}"#, Family::Http),
        (r#"{"url": "http://h"}"#, Family::Http),
        (r#"{"url": "HTTPS://user:pw@h:1/p?q#f"}"#, Family::Http),
        (r#"{"httpUrl": "https://h/mcp"}"#, Family::Http),
        (r#"{"url": "http://h", "type": "http"}"#, Family::Http),
        (
            r#"{"url": "http://h", "type": "streamable-http"}"#,
            Family::Http,
        ),
        (
            r#"{"url": "http://h", "type": "streamableHttp"}"#,
            Family::Http,
        ),
        (
            r#"{"httpUrl": "http://h", "type": "STREAMABLE_HTTP"}"#,
            Family::Http,
        ),
        (r#"{"url": "ws://h"}"#, Family::WebSocket),
        (r#"{"url": "wss://h/p", "type": "ws"}"#, Family::WebSocket),
        (
            r#"{"url": "wss://h/p", "type": "websocket"}"#,
            Family::WebSocket,
        ),
        (r#"{"tcp": "ws://h:1"}"#, Family::WebSocket),
        (r#"{"tcp": "h:1"}"#, Family::WebSocket),
    ] {
        assert_eq!(one(json).family(), want, "{json}");
    }
    let tcp = one(r#"{"tcp": "h:1"}"#);
    assert_eq!(remote(&tcp).url.expose_secret(), "ws://h:1");
}

#[test]
fn variables_are_expanded_where_a_server_is_defined() {
    let variables = |name: &str| match name {
        "V" => Some("value".to_owned()),
        "EMPTY" => Some(String::new()),
        "TRAP" => Some("${V}".to_owned()),
        _ => None,
    };
    for (text, want) in [
        ("${V}", "value"),
        ("a${V}b${V}c", "avaluebvaluec"),
        ("${env:V}", "value"),
        ("${EMPTY}", ""),
        ("${V:-d}", "value"),
        ("${NONE:-d}", "d"),
        ("${EMPTY:-d}", "d"),
        ("${NONE:-}", ""),
        ("${NONE:-a:-b c}", "a:-b c"),
        ("$${V}", "${V}"),
        ("x$${V}${V}", "x${V}value"),
        ("${NONE:-$}${V}", "$value"),
        ("pa$$word $V $", "pa$$word $V $"),
        ("${TRAP}", "${V}"),
    ] {
        let json = format!(
            r#"{{"mcpServers": {{"s": {{"command": "c{text}", "args": ["{text}"],
                "env": {{"E": "{text}"}}, "cwd": "/{text}"}}}}}}"#
        );

        let file = ConfigFile::parse_with(&json, variables);

        let program = program(&file.servers()[0]);
        assert_eq!(program.command, format!("c{want}"), "{text}");
        assert_eq!(program.args[0].expose_secret(), want, "{text}");
        assert_eq!(program.env["E"].expose_secret(), want, "{text}");
        assert_eq!(program.cwd.as_deref(), Some(Path::new(&format!("/{want}"))));
    }
}

#[test]
fn variables_are_expanded_in_addresses_headers_and_oauth_but_not_in_descriptions() {
    let json = r#"{"mcpServers": {"s": {"url": "http://${V}/mcp", "headers": {"X": "${V}"},
        "oauth": {"clientSecret": "${V}"}, "targetAudience": "${V}", "description": "${V} ${"}}}"#;

    let file = ConfigFile::parse_with(json, |_| Some("v".to_owned()));

    let server = &file.servers()[0];
    assert_eq!(remote(server).url.expose_secret(), "http://v/mcp");
    assert_eq!(remote(server).headers["x"].expose_secret(), "v");
    let oauth = server.oauth().unwrap();
    assert_eq!(oauth.client_secret.as_ref().unwrap().expose_secret(), "v");
    assert_eq!(server.target_audience(), Some("v"));
    assert_eq!(server.description(), Some("${V} ${"));
}

#[test]
fn the_variables_of_this_process_are_the_default() {
    let file = ConfigFile::parse(r#"{"mcpServers": {"s": {"command": "${CARGO_PKG_NAME}"}}}"#);

    assert_eq!(program(&file.servers()[0]).command, "steadfast-pool");
}

#[test]
fn fields_of_other_programs_warn_and_do_not_matter() {
    let file = parse(
        r#"{"s": {"command": "c", "autoApprove": ["*"], "alwaysAllow": [], "oauth": {"pkce": true}}}"#,
    );

    assert_eq!(file.servers().len(), 1);
    let warnings: Vec<_> = file.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            r#"server "s": oauth.pkce: unknown field; ignored"#,
            r#"server "s": autoApprove: unknown field; ignored"#,
            r#"server "s": alwaysAllow: unknown field; ignored"#,
        ]
    );
}

#[test]
fn a_field_of_ours_in_the_wrong_place_says_where_it_belongs() {
    let file = parse(r#"{"s": {"command": "c", "shared": false}}"#);

    let warnings: Vec<_> = file.warnings().iter().map(ToString::to_string).collect();
    let want = r#"server "s": shared: has no effect here, it belongs under `steadfast`; ignored"#;
    assert_eq!(warnings, [want]);
}

#[test]
fn what_has_no_effect_on_a_transport_warns() {
    let file = parse(
        r#"{"a": {"command": "c", "headers": {"X": "1"}, "oauth": {"clientId": "i"}},
            "b": {"url": "http://h", "args": ["x"], "env": {"E": "1"}, "cwd": "/",
                  "headers": {"Accept": "application/json", "Mcp-Session-Id": "1", "X": "1"}}}"#,
    );

    assert_eq!(file.servers().len(), 2);
    let fields: Vec<_> = file.warnings().iter().filter_map(|it| it.field()).collect();
    let want = [
        "headers",
        "oauth",
        "args",
        "env",
        "cwd",
        "headers.Accept",
        "headers.Mcp-Session-Id",
    ];
    assert_eq!(fields, want);
    let headers = &remote(&file.servers()[1]).headers;
    assert!(headers.keys().eq(["x"]), "{:?}", headers.keys());
}

#[test]
fn a_disabled_server_is_set_apart_unread() {
    let file = parse(
        r#"{"off": {"disabled": true, "command": "${NOT_SET_ANYWHERE}"},
            "off2": {"enabled": false, "url": "http://h"},
            "on": {"disabled": false, "enabled": true, "command": "c"}}"#,
    );

    assert!(file.errors().is_empty(), "{:?}", file.errors());
    let disabled: Vec<_> = file.disabled().iter().map(|name| &**name).collect();
    assert_eq!(disabled, ["off", "off2"]);
    assert_eq!(file.servers().len(), 1);
    assert!(file.server("on").is_some() && file.server("off").is_none());
}

#[test]
fn other_settings_in_the_file_and_a_byte_order_mark_do_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("settings.json");
    fs::write(
        &path,
        "\u{feff}{\"theme\": 1, \"mcpServers\": {\"s\": {\"command\": \"c\"}}}",
    )
    .unwrap();

    let file = ConfigFile::load(&path);

    assert_eq!(file.into_servers().unwrap().len(), 1);
    for empty in [r#"{"mcpServers": {}}"#, r#"{"mcpServers": null}"#] {
        assert!(ConfigFile::parse(empty).into_servers().unwrap().is_empty());
    }
}

#[test]
fn servers_keep_the_order_of_the_file_and_any_name() {
    let file = parse(
        r#"{"z": {"command": "c"}, "a::b": {"command": "c"}, "a": {"command": "c"}, "名": {"command": "c"}}"#,
    );

    let names: Vec<_> = file
        .servers()
        .iter()
        .map(|server| &**server.name())
        .collect();
    assert_eq!(names, ["z", "a::b", "a", "名"]);
}

#[test]
fn code_and_json_make_the_same_server() {
    let json = one(r#"{"command": "c", "args": ["a", "b", "c"], "env": {"E": "1"}, "cwd": "/w"}"#);

    let code = ServerConfig::stdio("s", "c")
        .arg("a")
        .args(["b", "c"])
        .env("E", "1")
        .cwd("/w")
        .build()
        .unwrap();

    let key = |config| steadfast_pool::Key::new(config, None);
    assert_eq!(key(&code), key(&json));
    let socket = ServerConfig::websocket("s", "ws://h")
        .header("X", "1")
        .build();
    assert_eq!(
        key(&socket.unwrap()),
        key(&one(r#"{"tcp": "h", "headers": {"x": "1"}}"#))
    );
}

fn parse(servers: &str) -> ConfigFile {
    ConfigFile::parse(&format!(r#"{{"mcpServers": {servers}}}"#))
}

fn one(server: &str) -> ServerConfig {
    let servers = parse(&format!(r#"{{"s": {server}}}"#)).into_servers();
    servers
        .unwrap_or_else(|errors| panic!("{server}: {errors}"))
        .remove(0)
}

fn program(server: &ServerConfig) -> &Program {
    match server.endpoint() {
        Endpoint::Stdio(program) => program,
        other => panic!("{other:?}"),
    }
}

fn remote(server: &ServerConfig) -> &Remote {
    match server.endpoint() {
        Endpoint::Http(remote) | Endpoint::WebSocket(remote) => remote,
        other => panic!("{other:?}"),
    }
}
