// Package dependencies holds the modules that Drover is built from against known faults.
// testdata/faults.yaml lists faults and needs no network. The database of the Go project
// has more of them, and is asked where it can be reached.
package dependencies
