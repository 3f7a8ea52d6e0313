package main

import "fmt"

// A cloud has a group <Name>.drover.dev.
type cloud struct {
	Name string
	// What names the cloud in a sentence: "Hetzner Cloud". Account is the part of it that a configuration reaches,
	// if that is narrower: "a project of Hetzner Cloud".
	What, Account string
	// Secret describes the value of the Secret's key.
	Secret string
	// SecretRef and CredentialsOf describe the content of the Secret, if it is more than credentials.
	SecretRef, CredentialsOf string
	// Identity means that the credentials may be those of the provider's own pod.
	Identity bool
	// ClusterOnly means that there is a ClusterProviderConfig and no ProviderConfig, and that the VMs are
	// resources of another provider. The group is generated from this table alone.
	ClusterOnly bool
	// Fields of a configuration's spec beside the credentials, in Go, and markers of the spec.
	Fields, SpecMarkers string
	// Columns of a configuration beside Secret and Age: name and path.
	Columns [][2]string
	// GroupVersion is the variable of the group and version.
	GroupVersion string
	// Kinds declares the kinds of configurations as constants.
	Kinds bool
}

// Variables of the group and version: upjet has its own name for it.
const (
	upjet       = "CRDGroupVersion"
	handWritten = "SchemeGroupVersion"
)

// defaultEndpoint is a field of the configurations of clouds whose API has a default address.
func defaultEndpoint(what string) string {
	return `
// Endpoint of the API. ` + what + `
// +optional
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=` + "`^https?://[A-Za-z0-9.:\\[\\]/_-]+$`" + `
Endpoint string ` + "`json:\"endpoint,omitempty\"`"
}

// apiBundle is the field of clouds of provider-inventory.
var apiBundle = bundle("the certificates of the API, and of what issues its tokens, are")

// bundle is a field with the certificates of authorities.
func bundle(whose string) string {
	return `
// CABundle is the PEM bundle that ` + whose + ` checked with. The
// default are the roots that the provider's image trusts.
// +optional
CABundle []byte ` + "`json:\"caBundle,omitempty\"`"
}

// required is a field with an identifier.
func required(field, key, whose, pattern string) string {
	return fmt.Sprintf(`
// %[1]s %[3]s
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=%[4]s
%[1]s string %[5]s`, field, key, whose, "`"+pattern+"`", "`json:\""+key+"\"`")
}

var clouds = []cloud{
	{
		Name: "hcloud", What: "Hetzner Cloud", Account: "a project of Hetzner Cloud",
		Secret:       `Its value is a JSON object, like {"token": "..."}. The token must be one that may read and write.`,
		Fields:       defaultEndpoint("The default is https://api.hetzner.cloud/v1."),
		GroupVersion: upjet, Kinds: true,
	},
	{
		Name: "local", What: "the local cloud", CredentialsOf: "Credentials and address",
		Secret:       `Its value is a JSON object, like {"endpoint": "http://127.0.0.1:8088", "token": "..."}.`,
		GroupVersion: upjet, Kinds: true,
	},
	{
		Name: "openstack", What: "OpenStack", Account: "a project of an OpenStack",
		Secret: `Its value is a JSON object, like {"applicationCredentialID": "...", "applicationCredentialSecret": "..."}, ` +
			`or with username, password, userDomainName, projectName and projectDomainName.`,
		Fields:       openstackFields + bundle("the cloud's certificates are"),
		GroupVersion: upjet, Kinds: true,
	},
	{
		Name: "vsphere", What: "a vCenter", SecretRef: "the user and the password",
		Secret:       `Its value is a JSON object, like {"username": "drover@vsphere.local", "password": "..."}.`,
		Fields:       vsphereServer + bundle("the vCenter's certificate is") + vsphereInsecure,
		SpecMarkers:  `+kubebuilder:validation:XValidation:rule="!(has(self.insecureSkipVerify) && self.insecureSkipVerify && has(self.caBundle))",message="caBundle is not used with insecureSkipVerify: set one of them"`,
		Columns:      [][2]string{{"Server", ".spec.server"}},
		GroupVersion: handWritten,
	},
	{
		Name: "proxmox", What: "Proxmox VE", Account: "a cluster of Proxmox VE", SecretRef: "the API token",
		Secret:       `Its value is a JSON object, like {"tokenID": "drover@pve!drover", "secret": "..."}.`,
		Fields:       proxmoxServer + bundle("the certificates of the cluster are") + proxmoxInsecure,
		SpecMarkers:  `+kubebuilder:validation:XValidation:rule="!(has(self.insecureSkipVerify) && self.insecureSkipVerify && has(self.caBundle))",message="caBundle is not used with insecureSkipVerify: set one of them"`,
		Columns:      [][2]string{{"Server", ".spec.server"}},
		GroupVersion: handWritten,
	},
	{
		Name: "nutanix", What: "Nutanix", Account: "a Prism Central", SecretRef: "the user and the password",
		Secret:       `Its value is a JSON object, like {"username": "drover", "password": "..."}.`,
		Fields:       nutanixServer + bundle("the certificate of Prism Central is") + nutanixInsecure,
		SpecMarkers:  `+kubebuilder:validation:XValidation:rule="!(has(self.insecureSkipVerify) && self.insecureSkipVerify && has(self.caBundle))",message="caBundle is not used with insecureSkipVerify: set one of them"`,
		Columns:      [][2]string{{"Server", ".spec.server"}},
		GroupVersion: handWritten,
	},
	{
		Name: "alibaba", What: "Alibaba Cloud", Account: "an account of Alibaba Cloud", SecretRef: "the AccessKey pair",
		Secret: `Its value is a JSON object, like {"accessKeyID": "...", "accessKeySecret": "..."}. Temporary ` +
			`credentials of STS have a securityToken too.`,
		Fields:       alibabaFields + bundle("the certificates of the API are"),
		Columns:      [][2]string{{"Region", ".spec.region"}},
		GroupVersion: handWritten,
	},
	{
		Name: "vcd", What: "VMware Cloud Director", Account: "an organization of VMware Cloud Director", SecretRef: "the API token, or the user and the password",
		Secret:       `Its value is a JSON object, like {"apiToken": "..."} or {"username": "drover", "password": "..."}.`,
		Fields:       vcdServer + bundle("the certificate of Cloud Director is") + vcdInsecure,
		SpecMarkers:  `+kubebuilder:validation:XValidation:rule="!(has(self.insecureSkipVerify) && self.insecureSkipVerify && has(self.caBundle))",message="caBundle is not used with insecureSkipVerify: set one of them"`,
		Columns:      [][2]string{{"Server", ".spec.server"}, {"Organization", ".spec.organization"}},
		GroupVersion: handWritten,
	},
	{
		Name: "metalstack", What: "metal-stack", Account: "a project of metal-stack", SecretRef: "the HMAC key or the token",
		Secret: `Its value is a JSON object, like {"hmac": "...", "hmacAuthType": "Metal-Edit"}, or like ` +
			`{"token": "..."} with a token of OpenID Connect.`,
		Fields:       metalstackFields + bundle("the certificate of the metal-api is") + metalstackInsecure,
		SpecMarkers:  `+kubebuilder:validation:XValidation:rule="!(has(self.insecureSkipVerify) && self.insecureSkipVerify && has(self.caBundle))",message="caBundle is not used with insecureSkipVerify: set one of them"`,
		Columns:      [][2]string{{"Server", ".spec.server"}, {"Project", ".spec.project"}},
		GroupVersion: handWritten,
	},
	{
		Name: "aws", What: "AWS", Account: "an account at AWS", ClusterOnly: true, Identity: true,
		Secret: `Its value is a file of credentials with the profile default, as the aws command has in ~/.aws/credentials.`,
		Fields: defaultEndpoint("The default is that of EC2 in the region of the inventory.") + apiBundle,
	},
	{
		Name: "azure", What: "Azure", Account: "a subscription of Azure", ClusterOnly: true, Identity: true,
		Secret: `Its value is a JSON object, like {"tenantId": "...", "clientId": "...", "clientSecret": "..."}.`,
		Fields: required("SubscriptionID", "subscriptionID", "whose VMs are listed.", `^[0-9A-Za-z-]+$`) +
			defaultEndpoint("The default is https://management.azure.com.") + apiBundle,
	},
	{
		Name: "digitalocean", What: "DigitalOcean", ClusterOnly: true,
		Secret: `Its value is a JSON object, like {"token": "..."}. A token that may read Droplets is enough.`,
		Fields: defaultEndpoint("The default is https://api.digitalocean.com.") + apiBundle,
	},
	{
		Name: "gcp", What: "Google Cloud", Account: "a project of Google Cloud", ClusterOnly: true, Identity: true,
		Secret: `Its value is the JSON key of a service account.`,
		Fields: required("ProjectID", "projectID", "whose VMs are listed.", `^[a-z0-9:.-]+$`) +
			defaultEndpoint("The default is https://compute.googleapis.com.") + apiBundle,
	},
	{
		Name: "kubevirt", What: "a cluster with KubeVirt", ClusterOnly: true, Identity: true,
		Secret: `Its value is a kubeconfig. Files and commands that it names are refused.`,
		Fields: defaultEndpoint("The default is the server of the kubeconfig."),
	},
	{
		Name: "yandex", What: "Yandex Cloud", Account: "a folder of Yandex Cloud", ClusterOnly: true, Identity: true,
		Secret: `Its value is the JSON of an authorized key of a service account.`,
		Fields: required("FolderID", "folderID", "whose VMs are listed.", `^[a-z0-9]+$`) +
			defaultEndpoint("The default is https://api.cloud.yandex.net.") + apiBundle,
	},
}

const openstackFields = `
// AuthURL is the address of Keystone, the identity service, in version 3, like
// https://keystone.example.org/v3.
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=` + "`^https?://[A-Za-z0-9.:\\[\\]/_-]+$`" + `
AuthURL string ` + "`json:\"authURL\"`" + `
// Region of the instances, if the cloud has several.
// +optional
// +kubebuilder:validation:MaxLength=253
Region string ` + "`json:\"region,omitempty\"`"

const vsphereServer = `
// Server is the vCenter: a host, like vcenter.example.org, with a port unless that
// is 443. It may be a URL too; without a path, /sdk is meant.
//
// A VM is never looked for in another vCenter than the one that it was made in: to
// move VMs to another, make a new configuration.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=` + "`^(https?://)?[A-Za-z0-9.:\\[\\]-]+(/.*)?$`" + `
Server string ` + "`json:\"server\"`"

const vsphereInsecure = `
// InsecureSkipVerify does not check the vCenter's certificate: who is on the way to
// it can read the password. Default false.
// +optional
InsecureSkipVerify *bool ` + "`json:\"insecureSkipVerify,omitempty\"`"

const proxmoxServer = `
// Server is the URL of a node of the cluster, or of a load balancer for its nodes, such as
// https://pve.example.org:8006. The default port is 8006.
//
// The provider never searches for a VM in another cluster than the one that the VM was created in.
// For another cluster, create another configuration.
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=` + "`^https?://[A-Za-z0-9.:\\[\\]-]+/?$`" + `
Server string ` + "`json:\"server\"`"

const proxmoxInsecure = `
// InsecureSkipVerify disables the verification of the server's certificate. An attacker
// between the provider and the server can then read the API token and all user data. Default false.
// +optional
InsecureSkipVerify *bool ` + "`json:\"insecureSkipVerify,omitempty\"`"

const nutanixServer = `
// Server is the URL of Prism Central, such as https://prism.example.org:9440. The default port is
// 9440.
//
// The provider never searches for a VM in another Prism Central than the one that the VM was created
// in. For another Prism Central, create another configuration.
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=` + "`^https://[A-Za-z0-9.:\\[\\]-]+/?$`" + `
Server string ` + "`json:\"server\"`"

const nutanixInsecure = `
// InsecureSkipVerify disables the verification of the server's certificate. An attacker
// between the provider and the server can then read the password and all user data. Default false.
// +optional
InsecureSkipVerify *bool ` + "`json:\"insecureSkipVerify,omitempty\"`"

const vcdServer = `
// Server is the URL of Cloud Director, such as https://vcd.example.org.
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=` + "`^https://[A-Za-z0-9.:\\[\\]-]+/?$`" + `
Server string ` + "`json:\"server\"`" + `
// Organization that has the VMs, by its name in the address of the tenant portal.
//
// The provider never searches for a VM in another organization than the one that the VM was created in.
// For another organization, create another configuration.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=` + "`^[A-Za-z0-9._-]+$`" + `
// +kubebuilder:validation:XValidation:rule="self.lowerAscii() != 'system'",message="organization must be that of a tenant: the provider creates VMs with the rights of a tenant only"
Organization string ` + "`json:\"organization\"`"

const vcdInsecure = `
// InsecureSkipVerify disables the verification of the server's certificate. An attacker
// between the provider and the server can then read the credentials and all user data. Default false.
// +optional
InsecureSkipVerify *bool ` + "`json:\"insecureSkipVerify,omitempty\"`"

const metalstackFields = `
// Server is the URL of the metal-api with its base path, such as https://api.metal.example.org/metal. The default
// port is 443.
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=` + "`^https://[A-Za-z0-9.:\\[\\]-]+(/[A-Za-z0-9._~/-]*)?$`" + `
Server string ` + "`json:\"server\"`" + `
// Project of metal-stack that the machines are allocated in, by ID.
//
// The provider never searches for a VM in another project than the one that the VM was created in. For another
// project, create another configuration.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=100
// +kubebuilder:validation:Pattern=` + "`^[A-Za-z0-9._-]+$`" + `
Project string ` + "`json:\"project\"`"

const metalstackInsecure = `
// InsecureSkipVerify disables the verification of the server's certificate. An attacker
// between the provider and the server can then make calls of its own and read all user data. Default false.
// +optional
InsecureSkipVerify *bool ` + "`json:\"insecureSkipVerify,omitempty\"`"

const alibabaFields = `
// Region of the instances, such as cn-hangzhou.
//
// The provider never searches for a VM in another region or account than the one that the VM was created in.
// For another region, create another configuration.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=` + "`^[a-z0-9-]+$`" + `
Region string ` + "`json:\"region\"`" + `
// RoleARN of a RAM role that the provider assumes with the credentials, such as
// acs:ram::1234567890123456:role/drover. The default is none.
// +optional
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:Pattern=` + "`^acs:ram::[0-9]+:role/[A-Za-z0-9.@_-]+$`" + `
RoleARN string ` + "`json:\"roleARN,omitempty\"`" + `
// Endpoint of ECS. The default is the public endpoint of the region, such as
// https://ecs.eu-central-1.aliyuncs.com. A region for finance or government needs an endpoint, and so does a
// provider in a VPC without access to the Internet.
// +optional
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=` + "`^https?://[A-Za-z0-9.:\\[\\]-]+/?$`" + `
Endpoint string ` + "`json:\"endpoint,omitempty\"`" + `
// STSEndpoint is the endpoint of the Security Token Service, which returns the ID of the account. The
// default is the public endpoint of the region, such as https://sts.eu-central-1.aliyuncs.com.
// +optional
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=` + "`^https?://[A-Za-z0-9.:\\[\\]-]+/?$`" + `
STSEndpoint string ` + "`json:\"stsEndpoint,omitempty\"`"
