#!/bin/sh
# Installs what the list has for this machine, if it has the digest of the list.
set -eu

list=${DROVER_DOWNLOADS:-/etc/drover/downloads}

case "$(uname -m)" in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
ppc64le) arch=ppc64le ;;
s390x) arch=s390x ;;
*)
  echo "nothing is built for machine type $(uname -m)" >&2
  exit 1
  ;;
esac

missing=$(awk -v arch="$arch" '{ all[$4] = 1 } $1 == arch { have[$4] = 1 } END { for (p in all) if (!(p in have)) print p }' "$list")
if [ -n "$missing" ]; then
  echo "the class has no digest for $arch of $missing" >&2
  exit 1
fi

has() {
  echo "$1  $2" | sha256sum --check --status 2>/dev/null
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

while read -r of digest url path; do
  if [ "$of" != "$arch" ] || has "$digest" "$path"; then
    continue
  fi
  curl --fail --silent --show-error --location --connect-timeout 10 --speed-limit 1000 --speed-time 30 --output "$dir/file" "$url"
  if ! has "$digest" "$dir/file"; then
    echo "what is at $url does not have the digest that the class has for it" >&2
    exit 1
  fi
  install -D -m 0755 "$dir/file" "$path.new"
  mv "$path.new" "$path"
  if command -v restorecon >/dev/null; then
    restorecon "$path"
  fi
done <"$list"
