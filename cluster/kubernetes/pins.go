//go:build tools

// Package main pins the module of the kubelet for real VMs: its command is built from the same
// module as the control plane, and no package imports it.
package main

import _ "k8s.io/kubernetes/cmd/kubelet/app"
