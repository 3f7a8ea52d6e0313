//go:build tools

// Package main pins what the kubelet of real VMs needs beside the control plane: its command is
// built from the same module, and imported by nothing.
package main

import _ "k8s.io/kubernetes/cmd/kubelet/app"
