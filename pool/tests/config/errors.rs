//! Wrong configurations: one line each, with file, server, field and what is allowed.

use std::fs;

use steadfast_pool::ConfigFile;

use crate::wrong::WRONG;

#[test]
fn every_wrong_server_is_one_line_with_file_server_field_and_what_is_allowed() {
    for (entry, field, problem, allowed) in WRONG {
        let (path, file) = load(&format!(
            r#"{{"mcpServers": {{"bad": {entry}, "good": {{"command": "c"}}}}}}"#
        ));

        let lines: Vec<_> = file.errors().iter().map(ToString::to_string).collect();
        let colon = if field.is_empty() { "" } else { ": " };
        let want = format!("{path}: server \"bad\": {field}{colon}{problem}; allowed: {allowed}");
        assert_eq!(lines, [want], "{entry}");
        let error = &file.errors()[0];
        assert_eq!(error.file(), Some(&*path));
        assert_eq!(error.server(), Some("bad"));
        assert_eq!(error.field().unwrap_or_default(), *field);
        assert_eq!(error.allowed(), *allowed);
        assert!(file.server("good").is_some(), "hidden by {entry}");
    }
}

#[test]
fn every_wrong_file_is_one_line_with_file_and_what_is_allowed() {
    let allowed = r#"allowed: {"mcpServers": {"<name>": {"command" or "url": …}}}"#;
    for (text, want) in [
        ("", ":1:0: not JSON: EOF while parsing a value"),
        (
            "{\n  \"mcpServers\": {\"a\": {},}\n}",
            ":2:26: not JSON: trailing comma",
        ),
        (
            "{\"mcpServers\": {\n\"a\": x}}",
            ":2:6: not JSON: expected value",
        ),
        ("[]", ": found an array"),
        ("{}", ": mcpServers: missing"),
        (r#"{"mcpserver": {}}"#, ": mcpServers: missing"),
        (r#"{"mcpServers": []}"#, ": mcpServers: found an array"),
        (
            r#"{"mcpServers": {}, "mcpServers": {}}"#,
            ": mcpServers: given twice",
        ),
    ] {
        let (path, file) = load(text);

        let lines: Vec<_> = file.errors().iter().map(ToString::to_string).collect();
        assert_eq!(lines, [format!("{path}{want}; {allowed}")], "{text}");
        assert!(file.servers().is_empty());
    }
    let errors = ConfigFile::parse("{\n]").into_servers().unwrap_err();
    let error = errors.iter().next().unwrap();
    assert_eq!((error.line(), error.column()), (Some(2), Some(1)));
    assert!(
        error.to_string().starts_with("line 2, column 1: not JSON"),
        "{error}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mcp.json");

    let missing = ConfigFile::load(&path)
        .into_servers()
        .unwrap_err()
        .to_string();
    fs::write(&path, [0xff]).unwrap();
    let binary = ConfigFile::load(&path)
        .into_servers()
        .unwrap_err()
        .to_string();

    let path = path.display();
    assert!(
        missing.starts_with(&format!("{path}: cannot be read: ")),
        "{missing}"
    );
    assert!(
        binary.starts_with(&format!("{path}: is not UTF-8; allowed: ")),
        "{binary}"
    );
}

#[test]
fn of_two_servers_with_one_name_neither_is_used() {
    let (path, file) = load(
        r#"{"mcpServers": {"a": {"command": "1"}, "b": {"command": "c"}, "a": {"command": "2"}}}"#,
    );

    let lines: Vec<_> = file.errors().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [format!(
            "{path}: server \"a\": given twice; allowed: each name once"
        )]
    );
    assert!(file.server("a").is_none() && file.server("b").is_some());
}

#[test]
fn all_mistakes_of_a_server_are_shown_at_once() {
    let (_, file) = load(
        r#"{"mcpServers": {"a": {"command": 1, "args": 2, "steadfast": {"x": 1, "limits": 3}}, "b": {}}}"#,
    );

    let errors = file.into_servers().unwrap_err();

    let fields: Vec<_> = errors.iter().filter_map(|error| error.field()).collect();
    let want = [
        "command",
        "args",
        "steadfast.limits",
        "steadfast.x",
        "command or url",
    ];
    assert_eq!(fields, want);
    assert_eq!(errors.to_string().lines().count(), 5);
}

#[test]
fn a_name_cannot_break_the_line() {
    let file = ConfigFile::parse(
        r#"{"mcpServers": {"a\nb\u2028": {"command": "c", "env": {"X\r\nY": 1}, "z\n": 1}}}"#,
    );

    let line = file.errors()[0].to_string();
    assert_eq!(
        line,
        r#"server "a\nb\u{2028}": env.X\r\nY: found a number; allowed: a string"#
    );
    assert_eq!(file.warnings()[0].to_string().lines().count(), 1);
}

fn load(text: &str) -> (String, ConfigFile) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mcp.json");
    fs::write(&path, text).unwrap();
    (path.display().to_string(), ConfigFile::load(&path))
}
