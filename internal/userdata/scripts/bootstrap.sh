#!/bin/sh
# Runs the steps that make this machine a Node, in order, each until it succeeded once.
set -eu

steps=${DROVER_STEPS:-/opt/drover/bin/steps}
stamps=${DROVER_STAMPS:-/var/lib/drover/steps}
written=${DROVER_WRITTEN:-/var/lib/drover/written}

mkdir -p "$stamps"
# From here on, a power cut takes back nothing of what the first boot wrote.
if [ ! -e "$written" ]; then
  sync
  : >"$written"
  sync
fi
for step in "$steps"/*; do
  name=${step##*/}
  stamp=$stamps/$name
  name=${name#*-}
  if [ -e "$stamp" ]; then
    continue
  fi
  echo "drover-bootstrap: step $name: started"
  code=0
  # A power cut can leave a file without its content, and an empty script would succeed.
  if [ ! -s "$step" ]; then
    echo "the script of the step is empty: the machine was cut off before its disk had it" >&2
    code=1
  else
    "$step" || code=$?
  fi
  if [ "$code" != 0 ]; then
    echo "drover-bootstrap: step $name: failed (exit $code), trying again in 5s" >&2
    exit 1
  fi
  # A power cut must not leave a stamp without the work of its step, nor take it back.
  sync
  : >"$stamp"
  sync
  echo "drover-bootstrap: step $name: done"
done
echo "drover-bootstrap: all steps are done"
