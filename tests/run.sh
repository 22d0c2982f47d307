#!/bin/bash
# Every test, the quick ones first. What cannot run on this machine is skipped; pytest prints why.
set -euo pipefail
cd "$(dirname "$0")/.."
pytest=.venv/bin/pytest

$pytest -q -n 2 tests/unit tests/layout
# Much of these two is waiting: one worker more than there are cores in the machine they were timed on.
$pytest -q -n 3 --dist loadfile tests/contract tests/integration
$pytest -q -n 3 --dist loadgroup -m "not alone" tests/e2e
$pytest -q -m alone tests/e2e
