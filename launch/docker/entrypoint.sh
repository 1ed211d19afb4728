#!/usr/bin/env bash
# The entry point of the image. It reads launch/env/ for the accelerator that the image was built for, and becomes the command, so that a
# TERM goes to the command itself.
#
#   entrypoint.sh [--dry-run] COMMAND
set -euo pipefail
# shellcheck source=launch/env/cpu.sh
source "$(dirname "${BASH_SOURCE[0]}")/../env/${ACCELERATOR:-cpu}.sh"
if [ "${1:-}" = --dry-run ]; then
  shift
  # shellcheck source=launch/common.sh
  source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
  quoted exec "$@"
  echo
  exit
fi
exec "$@"
