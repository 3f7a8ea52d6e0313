#!/bin/sh
# Starts containerd with its configuration, if it is new enough for the kubelet.
set -eu

installed=$(containerd --version | awk '{print $3}')
major=${installed#v}
major=${major%%.*}
if [ "$major" -lt "$CONTAINERD_MAJOR" ]; then
  echo "containerd $installed is installed, and kubelet $KUBELET_VERSION needs version $CONTAINERD_MAJOR" >&2
  exit 1
fi
systemctl daemon-reload
systemctl enable containerd.service
systemctl restart containerd.service
