// Package kubelet has the test of the configuration and the flags that Drover renders: it parses them with the
// packages of the kubelet.
package kubelet
