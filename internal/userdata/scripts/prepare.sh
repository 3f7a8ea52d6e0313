#!/bin/sh
# Prepares the kernel and the system for a kubelet.
set -eu

modprobe --all overlay br_netfilter
sysctl --quiet --load=/etc/sysctl.d/90-drover.conf

# By default a kubelet does not start while there is swap.
swapoff --all
if [ -e /etc/fstab ]; then
  sed -i -E 's@^[^#[:space:]]+[[:space:]]+[^[:space:]]+[[:space:]]+swap[[:space:]]@# &@' /etc/fstab
fi

# The stub of systemd-resolved answers on an address that pods do not have.
mkdir -p /etc/kubernetes
if [ -e /run/systemd/resolve/resolv.conf ]; then
  ln -sfn /run/systemd/resolve/resolv.conf "$RESOLV_CONF"
else
  ln -sfn /etc/resolv.conf "$RESOLV_CONF"
fi
systemctl try-restart systemd-journald.service
