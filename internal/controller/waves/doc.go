// Package waves carries out RolloutPolicies: it writes the state of their waves, and the answers to RolloutTurns. It decides
// nothing: the planner internal/plan/waves does.
//
// All policies are one reconcile, because an answer depends on all of them. Its cost grows with the number of
// MachineDeployments, and there is at most one in pace. Before a rollout of a later wave begins, the MachineDeployments are
// read from the API server: the cache may lack a change of an earlier wave that was made before.
package waves
