// Package config reports whether the target cluster of each ProviderConfig and ClusterProviderConfig
// can be reached, and protects a configuration that is in use from deletion.
//
// There are no ProviderConfigUsages: an index lists the Machines that use a configuration.
package config
