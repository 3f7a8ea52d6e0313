// Package step is the edge between Crossplane's function protocol and the planners: it decodes a
// request into typed objects, and encodes the decision of a planner into a response. It makes no
// decisions.
package step
