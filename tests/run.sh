#!/bin/bash
# Every test. What cannot run on this machine is skipped; pytest prints why.
#
# The end-to-end tests that break what others stand on wait most of their time, so what needs no cluster runs
# beside them and yields to them; what they print comes once both are through. The other end-to-end tests use
# all cores by themselves.
set -euo pipefail
cd "$(dirname "$0")/.."
pytest=.venv/bin/pytest

breaking_log=$(mktemp)
set -m                                           # a job of its own, so that it can be interrupted in order
$pytest -q -m alone tests/e2e > "$breaking_log" 2>&1 &
breaking=$!
trap 'kill -INT -- -$breaking 2>/dev/null && wait $breaking || true; rm -f "$breaking_log"' EXIT

nice -n 19 $pytest -q -n 2 tests/unit tests/layout
# Much of these two is waiting: one worker more than there are cores in the machine they were timed on.
nice -n 19 $pytest -q -n 3 --dist loadfile tests/contract tests/integration

broken=0
wait $breaking || broken=$?
cat "$breaking_log"
[ $broken = 0 ] || exit $broken

$pytest -q -n 3 --dist loadgroup -m "not alone" tests/e2e
