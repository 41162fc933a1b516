//! A wrong `mcp.json` on disk: one line that says where, what, and what is allowed.

use std::fs;

use serde_json::json;
use steadfast::ConfigFile;

/// What the file holds, and the line without its file: where, and what is wrong there.
const WRONG: [(&str, &str); 6] = [
    (
        r#"{"mcpServers": {"shop": {"command": "npx",}}}"#,
        r#"1:43: not JSON: trailing comma; allowed: {"mcpServers": {"<name>": {"command" or "url": …}}}"#,
    ),
    (
        r#"{"mcpServers": {"shop": {"args": []}}}"#,
        "server \"shop\": command or url: missing; allowed: ",
    ),
    (
        r#"{"mcpServers": {"shop": {"command": "npx", "args": 7}}}"#,
        "server \"shop\": args: found a number; allowed: an array of strings",
    ),
    (
        r#"{"mcpServers": {"shop": {"command": "npx", "type": "smoke"}}}"#,
        "server \"shop\": type: unknown; allowed: ",
    ),
    (
        r#"{"mcpServers": {"shop": {"command": "npx", "env": {"KEY": "${STEADFAST_IS_NOT_SET}"}}}}"#,
        "server \"shop\": env.KEY: variable `STEADFAST_IS_NOT_SET` is not set; allowed: ",
    ),
    (
        r#"{"mcpServers": {"shop": {"command": "npx", "steadfast": {"share": true}}}}"#,
        "server \"shop\": steadfast.share: unknown",
    ),
];

#[test]
fn a_wrong_file_gives_one_line_to_act_on() {
    let dir = tempfile::tempdir().unwrap();
    for (text, told) in WRONG {
        let path = dir.path().join("mcp.json");
        fs::write(&path, text).unwrap();

        let file = ConfigFile::load(&path);

        let [error] = file.errors() else {
            panic!("{text}: {:?}", file.errors());
        };
        let line = error.to_string();
        let place = path.to_string_lossy();
        let rest = line
            .strip_prefix(&*place)
            .unwrap_or_else(|| panic!("{line}"));
        let rest = rest.trim_start_matches([':', ' ']);
        assert!(rest.starts_with(told), "{line}");
        assert!(line.contains("; allowed: "), "{line}");
        assert!(!line.contains('\n'), "{line}");
        let all = file.into_servers().unwrap_err().to_string();
        assert_eq!(all, line, "all of it is that line");
    }
}

#[test]
fn one_wrong_server_hides_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mcp.json");
    let servers = json!({"good": {"command": "npx"}, "bad": {}, "worse": {"command": 7}});
    fs::write(&path, json!({ "mcpServers": servers }).to_string()).unwrap();

    let file = ConfigFile::load(&path);

    assert!(file.server("good").is_some());
    let wrong = file.errors().iter().filter_map(|error| error.server());
    assert_eq!(wrong.collect::<Vec<_>>(), ["bad", "worse"]);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let file = ConfigFile::load("no/such/mcp.json");

    let told = file.into_servers().unwrap_err().to_string();
    assert!(
        told.starts_with("no/such/mcp.json: cannot be read"),
        "{told}"
    );
}
