// Package localcloud is the Terraform provider of the local cloud. Terraform runs it as a plugin; Crossplane
// runs it in process, through upjet.
package localcloud
