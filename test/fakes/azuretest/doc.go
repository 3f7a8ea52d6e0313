// Package azuretest is a fake of the parts of Azure that list VMs: the token endpoints of Entra
// ID and of a machine's managed identities, Azure Resource Graph, and the permissions of a
// subscription in Azure Resource Manager. It speaks their wire format, authenticates, grants
// rights by role assignments, makes pages, limits the rate and fails in their words.
//
// It has no VMs of its own: a [State] provides those that exist at the moment, so that a
// simulator of VMs can stand behind it. [Memory] is a State that a test sets.
//
//	cloud := azuretest.New(azuretest.Options{State: state, Tenant: tenant, Subscription: subscription})
//	cloud.Assign(client, azuretest.Assignment{Actions: azuretest.Reader})
//	secret := cloud.NewSecret(client)
//	server := httptest.NewTLSServer(cloud)
//	credentials := cloud.Credentials(client, secret, server.URL)
//
// The SDK sends tokens to https endpoints only. A process that is to use the fake trusts its
// certificate by SSL_CERT_FILE; within a process, [Cloud.Transport] needs neither a server nor
// a certificate.
package azuretest
