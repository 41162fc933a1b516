#!/usr/bin/env bash
# Real servers that are not ours, over stdio and over HTTP: called, killed in mid-call, and
# called again.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/tests/interop
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$work"
npm install --silent --no-audit --no-fund @modelcontextprotocol/server-everything@2026.8.31
entry=$work/node_modules/@modelcontextprotocol/server-everything/dist/index.js
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/python/requirements.txt"
python=$work/venv/bin/python

free_port() { "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
everything=$(free_port) sdk=$(free_port) fast=$(free_port)
cat >mcp.json <<JSON
{"mcpServers": {
  "everything": {"command": "node", "args": ["$entry", "stdio"], "trust": true},
  "asking": {"command": "node", "args": ["$entry", "stdio"], "steadfast": {"shared": false}},
  "time": {"command": "$work/venv/bin/mcp-server-time", "args": ["--local-timezone", "UTC"]},
  "sdk": {"command": "$python", "args": ["$here/python/sdk.py", "stdio"]},
  "fast": {"command": "$python", "args": ["$here/python/fast.py", "stdio"]},
  "sdk-2026": {"command": "$python", "args": ["$here/python/sdk.py", "stdio"], "protocolVersion": "2026-07-28"},
  "everything-http": {"url": "http://127.0.0.1:$everything/mcp"},
  "sdk-http": {"url": "http://127.0.0.1:$sdk/mcp"},
  "fast-http": {"url": "http://127.0.0.1:$fast/mcp"},
  "sdk-http-2026": {"url": "http://127.0.0.1:$sdk/mcp", "protocolVersion": "2026-07-28"}
}}
JSON

cd "$root"
call() { cargo run --quiet --example call -- --config "$work/mcp.json" "$@"; }
expect() { # expect TEXT COMMAND…: its output has the text
  local text=$1 output
  shift
  output=$("$@" 2>&1) || true
  if ! grep -qF -- "$text" <<<"$output"; then
    printf 'expected %s in:\n%s\n' "$text" "$output" >&2
    exit 1
  fi
  echo "ok: $text"
}

call everything echo '{"message":"steadfast"}'
expect 'Echo: steadfast' call everything echo '{"message":"steadfast"}'
expect 'source: live' call everything get-sum '{"a":20,"b":22}'
expect '42' call everything get-sum '{"a":20,"b":22}'
expect 'read_only' call --list everything
expect 'the tool itself reported an error' call everything echo '{"message":7}'
# Said here or by the server, which announces another list as soon as it is connected.
expect 'no-such-tool' call everything no-such-tool
expect 'no server "nobody" in the file' call nobody echo
# The stacks to copy, as they are.
stack() { cargo run --quiet --example "stack_$1" -- "$work/mcp.json" everything "$2"; }
expect 'live: ' stack reads get-tiny-image
expect 'done: ' stack orders toggle-simulated-logging
expect 'Text' stack long get-tiny-image
if call nobody echo 2>/dev/null; then
  echo 'a failure must exit with another status than 0' >&2
  exit 1
fi

# A server that asks back, and one that takes its time.
questions() { cargo run --quiet --example questions -- "$work/mcp.json" asking "$@"; }
expect 'Name: tea' questions trigger-elicitation-request '{}'
expect 'forty-two' questions trigger-sampling-request '{"prompt":"six by nine"}'
expect 'file:///srv/shop' questions get-roots-list '{}'
expect 'progress: Some(4.0) of Some(4.0)' questions trigger-long-running-operation '{"duration":2,"steps":4}'
# Its tasks are of the kind before 2026-07-28, which rmcp cannot speak: refused, not hung.
expect 'runs only as a task' questions simulate-research-query '{"topic":"tea"}'

# check SERVER TOOL ARGUMENTS [COMMAND…]: killed in mid-call, it is called again.
check() {
  echo "--- $1"
  cargo run --quiet --features http --example check_server -- "$work/mcp.json" "$@"
}
check everything echo '{"message":"steadfast"}'
check time get_current_time '{"timezone":"UTC"}'
check sdk echo '{"text":"steadfast"}'
check fast echo '{"text":"steadfast"}'
check sdk-2026 echo '{"text":"steadfast"}'
check everything-http echo '{"message":"steadfast"}' env PORT="$everything" node "$entry" streamableHttp
check sdk-http echo '{"text":"steadfast"}' "$python" "$here/python/sdk.py" "$sdk"
check fast-http echo '{"text":"steadfast"}' "$python" "$here/python/fast.py" "$fast"
check sdk-http-2026 echo '{"text":"steadfast"}' "$python" "$here/python/sdk.py" "$sdk"

# Nothing is left: every server was started from this directory.
if pgrep -f -- "$work" >/dev/null; then
  pgrep -af -- "$work" >&2
  echo 'a server was left running' >&2
  exit 1
fi
