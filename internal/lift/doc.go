// Package lift runs resources of Terraform providers, which upjet has lifted, as
// managed resources that behave as machines need it: a VM is created at most
// once, is Ready when it runs and not merely when it exists, and its loss shows
// in its status.
package lift
