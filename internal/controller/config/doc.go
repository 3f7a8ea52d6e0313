// Package config says of each ProviderConfig and ClusterProviderConfig whether its
// target cluster can be reached, and keeps one that is in use from being deleted.
//
// There are no ProviderConfigUsages: an index has the Machines that use a configuration.
package config
