#!/usr/bin/env bash
# Calls a real server that is not ours over stdio: @modelcontextprotocol/server-everything.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$work"
npm install --silent --no-audit --no-fund @modelcontextprotocol/server-everything@2026.8.31
entry=$work/node_modules/@modelcontextprotocol/server-everything/dist/index.js
cat >mcp.json <<JSON
{"mcpServers": {"everything": {"command": "node", "args": ["$entry", "stdio"], "trust": true}}}
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
expect 'the server has no such tool' call everything no-such-tool
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
# Nothing is left: every server was started from this directory.
if pgrep -f -- "$entry" >/dev/null; then
  echo 'a server was left running' >&2
  exit 1
fi
