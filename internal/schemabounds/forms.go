package schemabounds

import (
	"fmt"
	"strings"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// A Form describes the texts that a pattern matches.
type Form struct {
	// Text completes "must be": what is allowed, without an example.
	Text string
	// Example is a text that the pattern matches.
	Example string
	// Check is a rule of CEL that the text must keep, too. "" stands for none.
	Check string
}

// Message of an API server for a text of another form.
func (f Form) Message() string { return fmt.Sprintf("must be %s, such as %s", f.Text, f.Example) }

// isURL reports whether a text is a URL whose port, if it has one, exists.
const isURL = "isURL(self) && (url(self).getPort() == '' || url(self).getPort().size() <= 5 && int(url(self).getPort()) >= 1 && int(url(self).getPort()) <= 65535)"

// Forms of the fields that users write, by the pattern in the marker of the field. A user who wrote another text
// gets the message, and not the pattern. The key has the pattern as it is in the schema of controller-gen.
var Forms = map[string]Form{
	// Names. Text, Example and Check.
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`:                  {"a name of lower-case letters, digits and -, that begins and ends with a letter or a digit", "team-a", ""},
	`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`:                  {"a name of lower-case letters, digits and -, that begins and ends with a letter or a digit", "workers", ""},
	`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`:                 {"a name of lower-case letters, digits, - and ., that begins and ends with a letter or a digit", "debian-12-v1", ""},
	`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`:                 {"a name of lower-case letters, digits, - and ., that begins and ends with a letter or a digit", "worker-1", ""},
	`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$`:        {"a name of letters, digits, - and ., that begins and ends with a letter or a digit", "worker-1", ""},
	`^[A-Za-z][A-Za-z0-9]*$`:                           {"a kind of letters and digits, that begins with a letter", "AWSMachine", ""},
	`^[A-Za-z][A-Za-z0-9]*Template$`:                   {"a kind of letters and digits, that begins with a letter and ends with Template", "KubeadmConfigTemplate", ""},
	`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$`:         {"a name of letters, digits and -, that begins and ends with a letter or a digit", "pve-1", ""},
	`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`:       {"a text of letters, digits, -, _ and ., that begins and ends with a letter or a digit", "v1.35.4", ""},
	`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`:       {"a text of letters, digits, -, _ and ., that begins and ends with a letter or a digit", "prod-1", ""},
	`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`:       {"a name of letters, digits, ., _ and -, that begins and ends with a letter or a digit", "ecr-credential-provider", ""},
	`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`:    {"a text of letters, digits, -, _ and ., that begins and ends with a letter or a digit, or empty", "blue", ""},
	`^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$`:    {"a text of letters, digits, -, _ and ., that begins and ends with a letter or a digit, or empty", "0f8c4d", ""},
	`^[A-Za-z0-9._-]+$`:                                {"a name of letters, digits, ., _ and -", "team_a-1", ""},
	`^[A-Za-z0-9_.-]+$`:                                {"a name of letters, digits, _, . and -", "vmbr0", ""},
	`^[A-Za-z0-9_-]+$`:                                 {"a name of letters, digits, _ and -", "x86-64-v2-AES", ""},
	`^[A-Za-z0-9_./-]+$`:                               {"a name of letters, digits, _, ., / and -", "workers/team-a", ""},
	`^[A-Za-z0-9-]+$`:                                  {"letters, digits and -", "eu-central-1", ""},
	`^[0-9A-Za-z-]+$`:                                  {"letters, digits and -", "00000000-0000-0000-0000-000000000000", ""},
	`^[a-z0-9-]+$`:                                     {"lower-case letters, digits and -", "eu-central-1", ""},
	`^[a-z0-9]+$`:                                      {"lower-case letters and digits", "b1g0000000000000000a", ""},
	`^[a-z0-9:.-]+$`:                                   {"lower-case letters, digits, :, . and -", "my-project-4711", ""},
	`^[a-z][a-z0-9]*$`:                                 {"lower-case letters and digits, with a letter first", "nic", ""},
	`^[a-z]{1,8}$`:                                     {"1 to 8 lower-case letters", "crt", ""},
	`^[A-Za-z][A-Za-z0-9_.-]*$`:                        {"a name of letters, digits, _, . and -, with a letter first", "local-lvm", ""},
	`^[a-z0-9_][a-z0-9_.+-]*$`:                         {"a tag of lower-case letters, digits, _, ., + and -", "team_a", ""},
	`^[^/?#]+$`:                                        {"an ID or a name without /, ? and #", "fra-equ01", ""},
	`^[^/\\%]+$`:                                       {`a name without /, \ and %`, "worker-1", ""},
	`^[a-z_][a-z0-9_-]{0,31}$`:                         {"a name of a Linux user: at most 32 lower-case letters, digits, _ and -, with a letter or _ first", "drover", ""},
	`^[-._a-zA-Z0-9]+$`:                                {"a key of a Secret: letters, digits, -, . and _", "userdata", ""},
	`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`: {"a group that begins with system:bootstrappers: and goes on with lower-case letters, digits, : and -", "system:bootstrappers:kubeadm:default-node-token", ""},

	labelKey: {"a key as labels have it: a name of at most 63 letters, digits, -, _ and ., that begins and ends with a letter or a digit, and may follow a domain and a slash", "example.org/dedicated", ""},

	// Patterns of users.
	`^[-a-z0-9*]+$`:       {"a name of a namespace, in which each * stands for any number of characters", "team-*", ""},
	`^[-_./A-Za-z0-9*]+$`: {"a key, in which each * stands for any number of characters", "example.org/*", ""},

	// Times.
	`^[0-9A-Za-z*/,?-]+( +[0-9A-Za-z*/,?-]+){4}$`: {"a schedule of cron with five fields: minute, hour, day of the month, month and day of the week", "0 2 * * 1-5", ""},

	// Addresses.
	`^https://`:                                                 {"a URL that begins with https://", "https://api.example.org:6443", isURL},
	`^https?://[A-Za-z0-9.:\[\]-]+/?$`:                          {"a URL of a host that begins with https:// or http://, with a port from 1 to 65535 if it has one and without a path", "https://cloud.example.org:8006", isURL},
	`^https://[A-Za-z0-9.:\[\]-]+/?$`:                           {"a URL of a host that begins with https://, with a port from 1 to 65535 if it has one and without a path", "https://cloud.example.org:9440", isURL},
	`^https://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~/-]*)?$`:        {"a URL that begins with https://, without a query", "https://api.example.org/metal", isURL},
	`^https?://[A-Za-z0-9.:\[\]/_-]+$`:                          {"a URL that begins with https:// or http://, without a query", "https://cloud.example.org:5000/v3", isURL},
	`^(https?://)?[A-Za-z0-9.:\[\]-]+(/.*)?$`:                   {"a host with or without a port, or its URL", "vcenter.example.org", ""},
	`^https?://[^\s'"]+$`:                                       {"a URL that begins with https:// or http://, without spaces and quotes", "https://mirror.example.org/kubernetes", isURL},
	`^https?://[^\s'"\\?#]+$`:                                   {"a URL that begins with https:// or http://, without spaces, quotes and a query", "https://mirror.example.org", isURL},
	`^https?://[^\s'"\\?#$%]+$`:                                 {"a URL that begins with https:// or http://, without spaces, quotes, $, % and a query", "http://proxy.example.org:3128", isURL},
	`^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$`:                {"a host or an IP address", "ntp.example.org", ""},
	`^[0-9a-zA-Z.:-]+$`:                                         {"a host or an IP address", "ntp.example.org", ""},
	`^[0-9a-fA-F.:]+$`:                                          {"an IP address", "192.0.2.53", "isIP(self)"},
	`^[0-9]{1,3}(\.[0-9]{1,3}){3}$`:                             {"an IPv4 address", "192.0.2.10", "isIP(self)"},
	`^[A-Za-z0-9.*:/_\[\]-]+$`:                                  {"a host, a domain, an IP address or a range of them", "10.0.0.0/8", ""},
	`^(_default|[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?)$`: {"a host of a registry with a port if it has one, without a scheme, or _default", "docker.io", ""},

	// Images, versions and hashes.
	`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@sha256:[0-9a-f]{64})?$`: {"an image with its registry", "registry.k8s.io/pause:3.10", ""},
	`^([a-z0-9][a-z0-9.-]*(:[0-9]+)?/)?[a-zA-Z0-9][a-zA-Z0-9_-]*/[a-zA-Z0-9][a-zA-Z0-9_-]*$`:                                          {"the source of a Terraform provider, NAMESPACE/NAME with the host of another registry before it", "hetznercloud/hcloud", ""},
	`^v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`:                                                                                {"a version of three numbers", "v1.35.4", ""},
	`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`:                                                                                  {"a version of three numbers, without v", "1.52.0", ""},
	`^[12]\.[0-9]+\.[0-9]+$`: {"a version 1 or 2 of containerd, without v", "2.1.4", ""},
	`^[0-9a-f]{64}$`:         {"a SHA-256 of 64 digits and letters from a to f", strings.Repeat("fedcba9876543210", 4), ""},
	`^[0-9a-fA-F]{64}$`:      {"a SHA-256 of 64 digits and letters from a to f", strings.Repeat("fedcba9876543210", 4), ""},

	// Files and units.
	`^0?[0-7]{3}$`:                 {"permissions of three octal digits, in quotes", "0644", ""},
	`^/[^\s'"\\$]+$`:               {`an absolute path without spaces, quotes, \ and $`, "/etc/sysctl.d/90-workers.conf", ""},
	`^/[A-Za-z0-9._/-]+$`:          {"an absolute path of letters, digits, ., _, / and -", "/usr/local/bin/kubelet", ""},
	`^#!/`:                         {"a script whose first line begins with #!/", "#!/bin/sh", ""},
	`^[A-Za-z0-9._-]+\.conf$`:      {"a name of a file with the suffix .conf", "10-limits.conf", ""},
	`^[A-Za-z0-9:_.@-]+\.service$`: {"a name of a unit of systemd with the suffix .service", "apt-daily.service", ""},
	`^[A-Za-z0-9:_.@-]+\.(service|socket|timer|mount|path|target|slice)$`: {"a name of a unit of systemd with a suffix: .service, .socket, .timer, .mount, .path, .target or .slice", "node-exporter.service", ""},
	`^[A-Za-z0-9._/-]+( [A-Za-z0-9._/=-]+)*$`:                             {"a command with its arguments, one space between them and no quotes", "update-ca-certificates --fresh", ""},

	// SSH keys.
	`^[^\r\n]+$`: {"one line", "ssh-ed25519 AAAA user", ""},
	`^(ssh-(rsa|ed25519)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com) [A-Za-z0-9+/]+=*( [^\n]*)?$`: {"a public key of SSH in one line", "ssh-ed25519 AAAA user", ""},

	// Fields of one cloud.
	`^[a-z]([a-z0-9-]*[a-z0-9])?$`: {"a name of lower-case letters, digits and -, that begins with a letter and ends with a letter or a digit", "worker-1", ""},
	`^[A-Z0-9_]+$`:                 {"upper-case letters, digits and _", "GVNIC", ""},
	`^(projects/[a-z0-9:.-]+/)?global/images/(family/)?[a-z0-9-]+$`:                                {"global/images/NAME or global/images/family/NAME, with projects/PROJECT/ before it for an image of another project", "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64", ""},
	`^(projects/[a-z0-9:.-]+/)?global/snapshots/[a-z0-9-]+$`:                                       {"global/snapshots/NAME, with projects/PROJECT/ before it for a snapshot of another project", "global/snapshots/data", ""},
	`^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+(/cryptoKeyVersions/[0-9]+)?$`: {"the resource name of a key of Cloud KMS", "projects/my-project/locations/europe-west4/keyRings/drover/cryptoKeys/disks", ""},
	`^(projects/[a-z0-9:.-]+/reservations/)?[a-z0-9-]+$`:                                           {"the name of a reservation, with projects/PROJECT/reservations/ before it for one that another project shares", "workers", ""},
	`^(default|[a-z0-9-]+@[a-z0-9.-]+)$`:                                                           {"the e-mail address of a service account, or default", "workers@my-project.iam.gserviceaccount.com", ""},
	`^[0-9a-fA-F.:]*(/[0-9]{1,3})?$`:                                                               {"a range of addresses, an address, or the length of a range", "/24", ""},
	`^(projects/[a-z0-9:.-]+/regions/[a-z0-9-]+/subnetworks/)?[a-z0-9-]+$`:                         {"the name of a subnetwork, with projects/PROJECT/regions/REGION/subnetworks/ before it for one of another project", "workers", ""},
	`^(projects/[a-z0-9:.-]+/global/networks/)?[a-z0-9-]+$`:                                        {"the name of a network, with projects/PROJECT/global/networks/ before it for one of another project", "production", ""},
	`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`:             {"the ID of a resource of Azure", "/subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/Microsoft.Network/virtualNetworks/NETWORK/subnets/SUBNET", ""},
	`^/[Cc]ommunityGalleries/[^/]+/[Ii]mages/[^/]+(/[Vv]ersions/[^/]+)?$`:                          {"the ID of an image of a community gallery", "/CommunityGalleries/GALLERY/Images/IMAGE/Versions/latest", ""},
	`^/[Ss]haredGalleries/[^/]+/[Ii]mages/[^/]+(/[Vv]ersions/[^/]+)?$`:                             {"the ID of an image of a shared gallery", "/SharedGalleries/GALLERY/Images/IMAGE/Versions/latest", ""},
	`^[A-Za-z0-9_().-]*[A-Za-z0-9_()-]$`:                                                           {"a name of letters, digits, _, -, . and parentheses, that does not end with a dot", "production-nodes", ""},
	`^[1-9]$`:                                                                                      {"the number of a zone", "1", ""},
	`^ssh-(rsa|ed25519) [A-Za-z0-9+/]+=*( [^\n]*)?$`:                                               {"a public key of SSH of the type RSA or Ed25519 in one line", "ssh-ed25519 AAAA user", ""},
	`^acs:ram::[0-9]+:role/[A-Za-z0-9.@_-]+$`:                                                      {"the ARN of a RAM role", "acs:ram::1234567890:role/drover", ""},
	`^arn:[a-z0-9-]+:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$`:                                    {"the ARN of an IAM role", "arn:aws:iam::123456789012:role/drover", ""},
	`^arn:`:                                           {"an ARN", "arn:aws:iam::123456789012:instance-profile/nodes", ""},
	`^[A-Za-z0-9+=,.@:/_-]+$`:                         {"an external ID of letters, digits, +, =, comma, ., @, :, /, _ and -", "tenant-1", ""},
	`^cr-[0-9a-zA-Z]+$`:                               {"the ID of a capacity reservation", "cr-0123456789abcdef0", ""},
	`^ami-[0-9a-zA-Z-]+$`:                             {"the ID of an AMI", "ami-0123456789abcdef0", ""},
	`^subnet-[0-9a-zA-Z-]+$`:                          {"the ID of a subnet", "subnet-0123456789abcdef0", ""},
	`^snap-[0-9a-zA-Z-]+$`:                            {"the ID of a snapshot", "snap-0123456789abcdef0", ""},
	`^pg-[0-9a-zA-Z]+$`:                               {"the ID of a placement group", "pg-0123456789abcdef0", ""},
	`^h-[0-9a-zA-Z]+$`:                                {"the ID of a dedicated host", "h-0123456789abcdef0", ""},
	`^(/dev/)?[a-z0-9]+$`:                             {"the name of a device", "/dev/sdf", ""},
	`^[0-9]+(\.[0-9]{1,6})?$`:                         {"a price per hour with at most six decimals, in quotes", "0.035", ""},
	`^[a-z0-9-]+\.[a-z0-9-]+$`:                        {"an instance type with a family and a size", "m7i.large", ""},
	`^ecs\.[a-z0-9.-]+$`:                              {"an instance type that begins with ecs. and has a family and a size", "ecs.g7.large", ""},
	`^[0-9]+(\.[0-9]+)?$`:                             {"a price per hour, in quotes", "0.0104", ""},
	`^[0-9]+(\.[0-9]{1,3})?$`:                         {"a price per hour with at most three decimals, in quotes", "0.125", ""},
	`^(ide[0-3]|sata[0-5]|scsi([0-9]|[12][0-9]|30))$`: {"a device of Proxmox VE: ide0 to ide3, sata0 to sata5, or scsi0 to scsi30", "ide2", ""},
}

const quantityMessage = "must be a quantity, such as 500m, 4 or 16Gi"

const (
	// maxFormLength bounds the estimated cost of the rule of a field without a limit of its own.
	maxFormLength = 1024
	// maxBase64Length bounds the cost of the rule: 390 000 bytes are more than the certificates of all public CAs.
	maxBase64Length = 512 * 1024
)

// messages of types that a format describes.
const (
	timeMessage   = "must be a time with a time zone from the year 1000 to 2999, such as 2026-11-27T08:00:00Z or 2026-11-27T09:00:00+01:00"
	base64Message = "must be base64 of certificates in PEM, such as the output of: base64 -w0 ca.crt"
)

// describe replaces a pattern by a rule with a message that has the form and an example. An API server evaluates no rule if
// a pattern or a format does not match, so neither may stay.
func describe(s *extv1.JSONSchemaProps) {
	switch f, ok := Forms[s.Pattern]; {
	case s.XIntOrString && s.Pattern == quantity:
		// The value is a number, or a text of any length. Of all checks of a text only this one stays below the limit of costs.
		s.Pattern, s.MaxLength = "", nil
		s.XValidations = append(extv1.ValidationRules{{Rule: "type(self) == int || isQuantity(self)", Message: quantityMessage}}, s.XValidations...)
	case s.Format == "date-time":
		s.Format = ""
		addRule(s, fmt.Sprintf("self.matches(%s) && (!self.contains('-02-29T') || %s)", literal(timeWithDay), isLeapYear), timeMessage, len("2026-11-27T08:00:00.123456789+01:00"))
	case s.Format == "byte":
		s.Format = ""
		addRule(s, base64Rule, base64Message, maxBase64Length)
	case ok:
		rule := fmt.Sprintf("self.matches(%s)", literal(s.Pattern))
		if f.Check != "" {
			rule += " && " + f.Check
		}
		addRule(s, rule, f.Message(), maxFormLength)
	}
}

func addRule(s *extv1.JSONSchemaProps, rule, message string, maxLength int) {
	s.Pattern = ""
	if s.MaxLength == nil {
		s.MaxLength = ptr.To(int64(maxLength))
	}
	s.XValidations = append(extv1.ValidationRules{{Rule: rule, Message: message}}, s.XValidations...)
}

// literal of CEL.
func literal(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`).Replace(text) + "'"
}

const (
	// timeWithDay is time with days that the month has.
	timeWithDay = `^[12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|[12][0-9]))T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	isLeapYear  = `int(self.substring(0, 4)) % 4 == 0 && (int(self.substring(0, 4)) % 100 != 0 || int(self.substring(0, 4)) % 400 == 0)`

	// base64Rule is cheaper than the pattern base64, for texts of the size of a bundle of certificates.
	base64Rule = `self.matches('^[A-Za-z0-9+/\r\n]*=?[\r\n]*=?[\r\n]*$') && self.replace('\r', '').replace('\n', '').size() % 4 == 0`
)
