package main

import (
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/charmbracelet/lipgloss"
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

make demo-break breaks its cloud: a menu of ten faults, each with what to look at.
make demo-down stops everything and deletes what it made.
`))

// whatNext prints the commands to try next, which are indented, in the color of commands.
func whatNext(out io.Writer, bin, kubeconfig string) error {
	text := &strings.Builder{}
	if err := next.Execute(text, struct{ Bin, Kubeconfig string }{bin, kubeconfig}); err != nil {
		return err
	}
	command := lipgloss.NewRenderer(out).NewStyle().Foreground(cyan)
	for line := range strings.Lines(text.String()) {
		if rest, ok := strings.CutPrefix(line, "  "); ok {
			line = "  " + command.Render(strings.TrimSuffix(rest, "\n")) + "\n"
		}
		if _, err := fmt.Fprint(out, line); err != nil {
			return err
		}
	}
	return nil
}
