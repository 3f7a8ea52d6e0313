#!/bin/sh
# Writes the kubeconfig by which Drover reaches a target cluster into the control cluster.
# Run it again before the token ends. README.md has what it needs.
#
#   CONTROL, TARGET   contexts of your kubeconfig
#   NAME              of the Secret in crossplane-system
#   DURATION          of the token; the API server may make it shorter
#   TOKEN             a token that you have, instead of a new one
set -eu
control=${CONTROL:-control} target=${TARGET:-target} name=${NAME:-production} duration=${DURATION:-24h}

umask 077
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cluster() { kubectl --context "$target" config view --minify --flatten -o jsonpath="{.clusters[0].cluster.$1}"; }
server=$(cluster server)
ca=$(cluster certificate-authority-data)
token=${TOKEN:-$(kubectl --context "$target" -n drover-system create token drover --duration="$duration")}

# The token is in a file, and never in the arguments of a process.
cat >"$dir/kubeconfig" <<END
apiVersion: v1
kind: Config
clusters:
  - name: $name
    cluster: {server: "$server", certificate-authority-data: "$ca"}
users:
  - name: drover
    user: {token: "$token"}
contexts:
  - name: $name
    context: {cluster: $name, user: drover}
current-context: $name
END
kubectl --context "$control" -n crossplane-system create secret generic "$name" --from-file="kubeconfig=$dir/kubeconfig" --dry-run=client -o yaml |
  kubectl --context "$control" apply --server-side --force-conflicts -f -
