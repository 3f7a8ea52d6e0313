// Package config says of each ProviderConfig and ClusterProviderConfig whether its
// target cluster can be reached, and keeps one that is in use from being deleted.
//
// There are no ProviderConfigUsages: who uses a configuration is asked of an index.
package config
