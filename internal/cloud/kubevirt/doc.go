// Package kubevirt lists the VirtualMachines of an installation of Drover in a cluster with
// KubeVirt, and their disks: DataVolumes and PersistentVolumeClaims.
//
// It reads objects without their Go types: KubeVirt's modules are large, and a list needs a
// few fields alone.
package kubevirt
