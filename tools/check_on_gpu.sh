#!/usr/bin/env bash
# Installs the wheel that lies beside this file, without a network and for this run only, and runs the check:
#     bash FOLDER/check.sh [option of python -m lowtide.torch.check...]
# PYTHON: the Python that has torch (python3).  OUT: where the results go (gpu-check in this folder).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
out=${OUT:-$here/gpu-check}
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT

tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
wheel=$(find "$here" -maxdepth 1 -name "lowtide-*-$tag-*.whl" -print -quit)
if [ -z "$wheel" ]; then
  echo "check.sh: $python is $tag, and the wheels here are $(cd "$here" && echo *.whl): PYTHON=... names another Python," \
    "make gpu GPU_PYTHON=... builds another wheel" >&2
  exit 1
fi
"$python" -m pip install -q --no-index --no-deps --no-compile --disable-pip-version-check --target "$site" "$wheel"
export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm --format=csv,noheader || true
fi
"$python" -u -m lowtide.torch.check --out "$out" --tests "$here/tests" "$@"
