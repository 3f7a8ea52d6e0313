// Package gcptest is a fake of the parts of Google Cloud that list VMs: the token endpoint for
// service accounts, a machine's metadata server, and the aggregated lists of instances, disks
// and addresses of the Compute API. It speaks their wire format with filters, partial responses
// and pages, verifies the signatures of service accounts, grants permissions, limits the rate
// and fails in their words.
//
// It has no VMs of its own: a [State] provides those that exist at the moment, so that a
// simulator of VMs can stand behind it. [Memory] is a State that a test sets.
//
//	cloud := gcptest.New(gcptest.Options{State: state, Project: "my-project"})
//	cloud.Grant(account, gcptest.Viewer...)
//	server := httptest.NewServer(cloud)
//	credentials, keyID, err := cloud.NewKey(account, server.URL)
//	endpoint := server.URL + "/compute/v1/"
package gcptest
