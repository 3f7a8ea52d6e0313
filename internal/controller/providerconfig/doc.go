// Package providerconfig has what the providers of all clouds do with their
// configurations: find the one that a VM names, read the credentials that it names,
// and keep it while VMs use it.
package providerconfig
