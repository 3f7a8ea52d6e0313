#!/bin/sh
# Puts the containerd of CONTAINERD_VERSION in place.
set -eu

case "$(uname -m)" in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
ppc64le) arch=ppc64le ;;
s390x) arch=s390x ;;
*)
  echo "no containerd is built for machine type $(uname -m)" >&2
  exit 1
  ;;
esac

name=containerd-$CONTAINERD_VERSION-linux-$arch.tar.gz
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

for file in "$name.sha256sum" "$name"; do
  curl --fail --silent --show-error --location --connect-timeout 10 --speed-limit 1000 --speed-time 30 \
    --output "$dir/$file" "$CONTAINERD_URL/v$CONTAINERD_VERSION/$file"
done
if ! echo "$(cut -d ' ' -f 1 "$dir/$name.sha256sum")  $dir/$name" | sha256sum --check --status; then
  echo "the containerd at $CONTAINERD_URL does not have the checksum that is beside it" >&2
  exit 1
fi
tar --extract --gzip --file "$dir/$name" --directory "${PREFIX:-/usr/local}" --no-same-owner
if command -v restorecon >/dev/null; then
  restorecon -R "${PREFIX:-/usr/local}/bin"
fi
