#!/bin/sh
# Runs the steps that make this machine a Node, in order, each until it succeeded once.
set -eu

steps=${DROVER_STEPS:-/opt/drover/bin/steps}
stamps=${DROVER_STAMPS:-/var/lib/drover/steps}

mkdir -p "$stamps"
for step in "$steps"/*; do
  name=${step##*/}
  if [ -e "$stamps/$name" ]; then
    continue
  fi
  echo "drover: step $name"
  if ! "$step"; then
    echo "drover: step $name failed, and is tried again" >&2
    exit 1
  fi
  # A power cut must not leave a stamp without the work of its step.
  sync
  : >"$stamps/$name"
done
echo "drover: all steps are done"
