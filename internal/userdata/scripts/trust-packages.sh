#!/bin/sh
# Has the system trust the certificates of the class, with what packages brought.
set -euf

# The command and its arguments are words.
# shellcheck disable=SC2086
exec $TRUST_COMMAND
