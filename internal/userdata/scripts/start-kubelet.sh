#!/bin/sh
# Starts the kubelet, now and at each boot.
set -eu

systemctl daemon-reload
systemctl enable --now kubelet.service
