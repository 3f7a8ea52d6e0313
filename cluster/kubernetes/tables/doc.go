// Package tables has the tests that compare what Drover knows of kubelets with the source of Kubernetes. It
// imports few packages, so a table of another version is written in a minute.
package tables
