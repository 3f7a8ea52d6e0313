#!/bin/sh
# Writes the VM's providerID into the kubelet's configuration, as soon as the cloud tells it.
set -eu

config=$KUBELET_CONFIG
pause=${PAUSE:-2}

if grep -q '^providerID:' "$config"; then
  exit 0
fi

ask() {
@COMMAND@
}

tries=0
until id=$(ask) && [ -n "$id" ]; do
  tries=$((tries + 1))
  if [ "$tries" -ge 150 ]; then
    echo "the cloud does not tell the providerID of this VM" >&2
    exit 1
  fi
  sleep "$pause"
done
printf 'providerID: "%s"\n' "$id" >>"$config"
