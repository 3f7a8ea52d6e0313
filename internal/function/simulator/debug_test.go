package simulator

import (
	"fmt"
	"os"
)

func init() {
	if os.Getenv("SIMDEBUG") == "" {
		return
	}
	debug = func(c *Cluster, what string) {
		fmt.Printf("== %s\n%s", what, c)
		for _, s := range c.setsOfRollout.list() {
			fmt.Printf("    rollout sees %s gen %d replicas %d obs %d status r%d t%d a%d\n", s.Name, s.Generation, s.Spec.Replicas, s.Status.ObservedGeneration, s.Status.Replicas, s.Status.TerminatingReplicas, s.Status.AvailableReplicas)
		}
		if e, ok := c.deploymentView.get(DeploymentName); ok {
			fmt.Printf("    rollout sees md version %s told %v\n", e.object.Spec.Template.Spec.Version, e.object.Status.MachineSets)
		}
		for _, s := range c.setsOfReplicas.list() {
			fmt.Printf("    replicas sees %s gen %d replicas %d dropping %v\n", s.Name, s.Generation, s.Spec.Replicas, s.Status.Dropping)
		}
		for _, s := range c.machineView.list() {
			fmt.Printf("    replicas sees machine %s %s t%t\n", s.Name, s.Status.Phase, s.DeletionTimestamp != nil)
		}
	}
}
