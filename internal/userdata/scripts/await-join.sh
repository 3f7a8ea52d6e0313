#!/bin/sh
# Waits until the kubelet has its client certificate.
set -eu

kubeconfig=${DROVER_KUBECONFIG:-/etc/kubernetes/kubelet.conf}

tries=0
until [ -s "$kubeconfig" ]; do
  tries=$((tries + 1))
  if [ "$tries" -ge 150 ]; then
    echo "the kubelet has no client certificate yet" >&2
    exit 1
  fi
  sleep "${PAUSE:-2}"
done
