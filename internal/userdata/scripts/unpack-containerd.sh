#!/bin/sh
# Unpacks the containerd that was downloaded with its digest.
set -eu

tar --extract --gzip --file "$CONTAINERD_ARCHIVE" --directory "${PREFIX:-/usr/local}" --no-same-owner
if command -v restorecon >/dev/null; then
  restorecon -R "${PREFIX:-/usr/local}/bin"
fi
