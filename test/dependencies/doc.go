// Package dependencies checks the modules that Drover is built from for known vulnerabilities.
// testdata/faults.yaml lists some and needs no network. The database of the Go project has more,
// and is queried if it can be reached.
package dependencies
