// Package lift runs resources of Terraform providers, for which upjet has generated managed resources, as
// Machines need them: a VM is created at most once, is Ready when it runs and not as soon as it exists, and its
// loss is visible in its status.
package lift
