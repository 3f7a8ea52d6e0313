#!/bin/sh
# Puts the kubelet of KUBELET_VERSION in place, unless the image has it already.
set -eu

version=$KUBELET_VERSION
url=$KUBELET_URL
kubelet=$KUBELET_PATH

if [ "$("$kubelet" --version 2>/dev/null)" = "Kubernetes $version" ]; then
  exit 0
fi

case "$(uname -m)" in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
ppc64le) arch=ppc64le ;;
s390x) arch=s390x ;;
*)
  echo "no kubelet is built for machine type $(uname -m)" >&2
  exit 1
  ;;
esac

fetch() {
  curl --fail --silent --show-error --location --connect-timeout 10 --speed-limit 1000 --speed-time 30 --output "$2" "$1"
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fetch "$url/$version/bin/linux/$arch/kubelet.sha256" "$dir/sum"
fetch "$url/$version/bin/linux/$arch/kubelet" "$dir/kubelet"

# The checksum file holds the sum, and at some mirrors the name of the file too.
if ! echo "$(cut -d ' ' -f 1 "$dir/sum")  $dir/kubelet" | sha256sum --check --status; then
  echo "the kubelet at $url does not have the checksum that is beside it" >&2
  exit 1
fi
install -D -m 0755 "$dir/kubelet" "$kubelet.new"
mv "$kubelet.new" "$kubelet"
if command -v restorecon >/dev/null; then
  restorecon "$kubelet"
fi
