// Command provider-drover runs the controllers of what Drover keeps in target
// clusters, and of the order in which its machines go.
package main

import "github.com/drover-dev/drover/internal/operator"

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-drover",
		Description: "Joins machines to Kubernetes clusters, reports and drains their Nodes, and deletes them in order.",
		AddToScheme: addToScheme,
		Setup:       setup,
	})
}
