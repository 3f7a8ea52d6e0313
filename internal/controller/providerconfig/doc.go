// Package providerconfig has the operations on configurations that the providers of all clouds share:
// finding the configuration that a VM names, reading its credentials, and protecting it while VMs use
// it.
package providerconfig
