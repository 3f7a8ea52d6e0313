// Package plugin runs Terraform providers without Terraform.
//
// A provider is a program that serves the plugin protocol, version 5 or 6, by gRPC to the process
// that started it. A [Pool] starts one process for each configuration and shares it. A [Provider]
// is its client:
//
//	JSON arguments ─ Config ─▶ config ─ Validate, PlanCreate ─▶ plan ─ ApplyCreate ─▶ state
//	                                           state ─ Read ─▶ state, or null: it is lost
//	                                           state ─ Destroy ─▶ null
//	               external name ─ Import ─▶ state         old state ─ Upgrade ─▶ state
//
// The messages are those of tfplugin5.proto and tfplugin6.proto in
// github.com/hashicorp/terraform-plugin-go. Both versions have the same fields in the messages
// that are used here, but for two of an attribute, which their wire types distinguish. They
// are encoded by hand: the generated packages are internal to that module, and a second
// registration of the same messages in one process panics.
package plugin
