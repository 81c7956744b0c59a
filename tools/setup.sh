#!/usr/bin/env bash
# Makes the virtual environment ready: a Python >= 3.11 is found by name, then the package
# (editable) and the development tools are installed in the versions of requirements-dev.lock.
#
#   VENV    where it goes; .venv by default
#   PYTHON  the interpreter to take instead of looking for one
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}

say() { printf 'setup: %s\n' "$*" >&2; }

# New enough, and able to make an environment with pip in it.
suits() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local name
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
        if command -v "$name" >/dev/null && suits "$name"; then
            echo "$name"
            return
        fi
    done
    return 1
}

# Install system packages, where that may be done.
install_system() {
    local sudo=()
    command -v apt-get >/dev/null || return 1
    [ "$(id -u)" = 0 ] || { sudo -n true 2>/dev/null && sudo=(sudo -n); } || return 1
    say "installing the system packages $*"
    "${sudo[@]}" apt-get update -qq >&2 &&
        "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >&2
}

# The programs of a PostgreSQL server; Debian keeps them out of the PATH.
has_postgres() {
    command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}

if [ -e "$venv" ] && ! suits "$venv/bin/python"; then
    say "$venv does not work any more; making it anew"
    rm -rf "$venv"
fi
if [ ! -e "$venv" ]; then
    if ! python=$(find_python) && { [ -n "${PYTHON:-}" ] || ! install_system python3 python3-venv ||
        ! python=$(find_python); }; then
        say "no Python 3.11 or newer with its venv module was found${PYTHON:+ at $PYTHON}."
        say "Debian, Ubuntu:  sudo apt-get install python3 python3-venv"
        say "Fedora:          sudo dnf install python3"
        say "macOS:           brew install python@3.13"
        say "or name one:     PYTHON=/path/to/python3 make setup"
        exit 1
    fi
    say "making $venv with $("$python" --version)"
    "$python" -m venv "$venv"
fi

pip=("$venv/bin/python" -m pip --disable-pip-version-check --no-input -qq install)
# Dependency groups came with pip 25.1.
"$venv/bin/python" -c '
import pip, sys
major, minor = pip.__version__.split(".")[:2]
sys.exit((int(major), int(minor)) < (25, 1))
' || "${pip[@]}" --upgrade 'pip>=25.1'

wanted=(--editable . --group dev)
say "installing the package and its tools; once, a minute or so"
if ! "${pip[@]}" --constraint requirements-dev.lock "${wanted[@]}"; then
    say "the locked versions cannot be had here; taking the newest that fit"
    if ! "${pip[@]}" "${wanted[@]}"; then
        say "installing failed, see above; pip needs a network or a local index (PIP_INDEX_URL)"
        exit 1
    fi
fi

# Tests of the PostgreSQL store start a server of their own; CI fails without one.
if ! has_postgres && ! install_system postgresql; then
    say "no PostgreSQL server is installed: its tests will be skipped"
    say "Debian, Ubuntu:  sudo apt-get install postgresql"
    say "Fedora:          sudo dnf install postgresql-server"
    say "macOS:           brew install postgresql"
fi
say "ready"
