// Package v1alpha1 holds the virtual machines of the local cloud, their inventories, and the configurations
// with its address and the credentials.
package v1alpha1
