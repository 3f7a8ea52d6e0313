// Package installations keeps the record of the installations of Drover that this control
// cluster had, in the ConfigMap drover-installations. An OrphanCollector deletes VMs of a
// former installation only if the record proves that it is gone.
package installations
