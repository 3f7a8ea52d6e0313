#!/bin/sh
# Has the system trust the certificates of the class if a package brought the command. The command
# takes up to a minute on a slow machine: it does not run again.
set -euf

if [ -e "${DROVER_TRUSTED:-/var/lib/drover/trusted}" ]; then
  echo "drover: the certificates are trusted already"
  exit 0
fi
# The command and its arguments are words.
# shellcheck disable=SC2086
exec $TRUST_COMMAND
