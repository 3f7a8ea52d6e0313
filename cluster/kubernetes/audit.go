package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// auditLevels are the values of --audit.
var auditLevels = []string{"Metadata", "Request", "RequestResponse"}

// auditPolicy records every write once it is answered. It omits Leases, which are heartbeats, and
// reviews, which are queries.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
omitManagedFields: true
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
  - {group: authentication.k8s.io}
  - {group: authorization.k8s.io}
- level: %s
`

func writeAuditPolicy(l layout, level string) error {
	if !slices.Contains(auditLevels, level) {
		return fmt.Errorf("--audit: got %q, want one of %s", level, strings.Join(auditLevels, ", "))
	}
	return os.WriteFile(l.auditPolicy(), fmt.Appendf(nil, auditPolicy, level), 0o600)
}
