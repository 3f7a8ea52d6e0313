// Command drover-kube is an unmodified Kubernetes control plane in one process:
// etcd, kube-apiserver, kube-controller-manager and kube-scheduler. It needs no
// container runtime and no installed Kubernetes.
//
//	drover-kube serve --dir DIR --port PORT   runs the control plane until SIGTERM
//	drover-kube kubectl ARGS...               is kubectl (so is the name "kubectl")
//
// DIR has the files of the control plane. The caller provides all but the last two:
//
//	pki/ca.{crt,key}          signs client and kubelet certificates
//	pki/apiserver.{crt,key}   serving certificate
//	pki/sa.{pub,key}          signs ServiceAccount tokens
//	component.kubeconfig      identity of controller-manager and scheduler
//	etcd/                     the data of etcd
//	audit.log                 with --audit LEVEL: every write, as JSON
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
)

const usage = `usage: drover-kube serve --dir DIR --port PORT [--audit LEVEL]
       drover-kube kubectl ARGS...`

func main() {
	if filepath.Base(os.Args[0]) == "kubectl" {
		runKubectl()
		return
	}
	if len(os.Args) < 2 {
		fail(2, usage)
	}
	switch os.Args[1] {
	case "kubectl":
		// kubectl itself reads os.Args to find its plugins.
		os.Args = append([]string{"kubectl"}, os.Args[2:]...)
		runKubectl()
	case "serve":
		if err := serve(os.Args[2:]); err != nil {
			fail(1, "drover-kube: "+err.Error())
		}
	default:
		fail(2, usage)
	}
}

func runKubectl() {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}

func fail(code int, message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(code)
}
