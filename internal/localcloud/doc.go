// Package localcloud is the Go SDK of the local cloud: the types of its HTTP
// API and a client.
//
// The local cloud is a small cloud of virtual machines on one computer. It has the difficulties that a provider
// meets in any cloud: calls that are not idempotent, quota, throttling, errors of several classes, lost
// responses, and machines that vanish or never boot.
//
//	c, err := localcloud.NewClient("http://127.0.0.1:8088", token)
//	vm, err := c.CreateVM(ctx, localcloud.CreateVMRequest{
//		Name: "worker-1", Image: localcloud.ImageUbuntu2404, Size: localcloud.SizeSmall,
//		UserData: cloudConfig, Tags: map[string]string{"cluster": "blue"},
//	})
//
// An error that the API returned is an *Error. Any other error means that no response was read: a creation that
// ends so may have created a VM nonetheless.
package localcloud
