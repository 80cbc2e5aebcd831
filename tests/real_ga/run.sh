#!/usr/bin/env bash
# The runner in a real GenericAgent: bash tests/real_ga/run.sh CHECKOUT [pytest options]
# CHECKOUT is a folder with GenericAgent's files; it is copied, never written to. Its environment is made in a temporary folder.
set -euo pipefail
checkout="$(cd "${1:?usage: run.sh CHECKOUT [pytest options]}" && pwd)"
shift
cd "$(dirname "$0")/../.."
[ -f "$checkout/ga.py" ] || { echo "$checkout holds no GenericAgent (no ga.py)" >&2; exit 2; }
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
if [ -z "${GENERICAGENT_PYTHON:-}" ]; then
    python3 -m venv "$place/venv"
    "$place/venv/bin/python" - "$checkout/pyproject.toml" > "$place/needs" <<'PY'
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
block = re.search(r"^dependencies = \[(.*?)\]", text, re.M | re.S)[1]
print("\n".join(re.findall(r'"([^"]+)"', block)))
PY
    "$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$place/needs" psutil filelock
    export GENERICAGENT_PYTHON="$place/venv/bin/python"
fi
GENERICAGENT="$checkout" "${PYTEST_PYTHON:-.venv/bin/python}" -m pytest -m costly -p no:cacheprovider tests/real_ga "$@"
