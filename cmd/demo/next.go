package main

import (
	"io"
	"text/template"
)

var next = template.Must(template.New("next").Parse(`
Every Machine has its Node. The cluster is yours:

  export KUBECONFIG={{.Kubeconfig}}
  alias kubectl="{{.Bin}}/drover-kube kubectl"     # or a kubectl of your own

  export PATH="$PATH:{{.Bin}}"                     # kubectl drover
  kubectl drover status
  kubectl drover tree
  kubectl get md,ms,ma,nodes
  kubectl scale md workers --replicas=5
  kubectl patch md workers --type=merge -p '{"spec":{"template":{"spec":{"version":"v1.35.5"}}}}'
  kubectl drover status md workers --watch
  kubectl delete md workers

make demo-down stops everything and deletes what it made.
`))

func whatNext(out io.Writer, bin, kubeconfig string) error {
	return next.Execute(out, struct{ Bin, Kubeconfig string }{bin, kubeconfig})
}
