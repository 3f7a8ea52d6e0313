#!/bin/sh
# Writes VERSION.mod and VERSION.sum: the modules with which drover-kube and the kubelet are built as another
# version of Kubernetes, by "go build -modfile=versions/VERSION.mod".
#
# The go.mod of Kubernetes v1.X.Y replaces the staging modules by folders of its repository. VERSION.mod
# replaces them by their releases v0.X.Y.
set -eu
version=${1:-}
case $version in
v1.*.*) ;;
*)
	echo "VERSION: got \"$version\", want a version like v1.37.2" >&2
	exit 1
	;;
esac
cd "$(dirname "$0")/.."

kubernetes=$(mktemp -d)
trap 'rm -rf "$kubernetes"' EXIT
go mod download -json "k8s.io/kubernetes@$version" >"$kubernetes/module.json"
file=$(sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p' "$kubernetes/module.json")
staging=$(sed -n 's#^\t\(k8s.io/[a-z-]*\) => ./staging/.*#\1#p' "$file")
[ -n "$staging" ] || {
	echo "$file: replaces no module by a folder of staging" >&2
	exit 1
}

{
	echo "// Written by versions/pin.sh $version. The go.mod beside the sources explains the module."
	sed -n 's/^module .*/&/p; s/^go .*/\n&/p' go.mod
	printf '\nrequire k8s.io/kubernetes %s\n\nreplace (\n' "$version"
	for m in $staging; do
		printf '\t%s => %s v0.%s\n' "$m" "$m" "${version#v1.}"
	done
	echo ")"
} >"versions/$version.mod"
rm -f "versions/$version.sum"
go mod tidy -modfile="versions/$version.mod"
