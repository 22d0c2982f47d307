#!/bin/bash
# Every test, the quick ones first. What cannot run on this machine is skipped; pytest prints why.
set -euo pipefail
cd "$(dirname "$0")/.."
pytest=.venv/bin/pytest

$pytest -q -n 2 tests/unit tests/layout
$pytest -q -n 2 --dist loadfile tests/contract tests/integration
if [ -e tests/e2e/conftest.py ]; then
  $pytest -q tests/e2e
fi
