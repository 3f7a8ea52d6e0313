package kube

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/cluster/internal/layout"
)

func TestPrepareKeepsTheAuthorityOfAnEarlierStart(t *testing.T) {
	dir := t.TempDir()
	k := ControlPlane{Name: "kubernetes", Dir: layout.Cluster(dir), Port: 6443, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	var before []byte
	for range 2 {
		if err := k.Prepare(time.Now()); err != nil {
			t.Fatal(err)
		}
		ca, err := k.CA()
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && string(ca) != string(before) {
			t.Error("the authority was made anew: every Node would have to join again")
		}
		before = ca
	}
	config, err := clientcmd.BuildConfigFromFlags("", k.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:6443" {
		t.Errorf("server: got %s", config.Host)
	}
	info, err := os.Stat(k.Dir.PKI("ca.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("ca.key: got %v, %v", info.Mode(), err)
	}
}

func TestCompleteLeavesWhatKubeadmLeaves(t *testing.T) {
	objects, err := clusterObjects("https://127.0.0.1:1", []byte("ca"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, o := range objects {
		names[o.GetName()] = true
	}
	for _, want := range []string{
		"drover:cluster-admins", "cluster-info", "kubeadm:kubelet-bootstrap", "kubeadm:bootstrap-signer-clusterinfo",
		"kubeadm:node-autoapprove-bootstrap", "kubeadm:node-autoapprove-certificate-rotation",
	} {
		if !names[want] {
			t.Errorf("%s is missing", want)
		}
	}
}
