// Command provider-drover runs the controllers of Machines, of their Nodes and tokens in
// target clusters, and of the deletion of their sets.
package main

import "github.com/drover-dev/drover/internal/operator"

func main() {
	operator.Main(operator.Operator{
		Name:        "provider-drover",
		Description: "Makes Machines of the Compositions of their clouds, joins them to Kubernetes clusters, drains their Nodes, and deletes them in order.",
		AddToScheme: addToScheme,
		Setup:       setup,
	})
}
