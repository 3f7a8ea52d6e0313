// Package step is the edge between Crossplane's function protocol and the
// planners: it decodes a request into typed objects, and encodes what a planner
// decided into a response. It decides nothing.
package step
