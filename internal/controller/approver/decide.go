package approver

import (
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/drover-dev/drover/internal/workernode"
)

// An outcome of a decision.
type outcome string

const (
	// leave the request to other approvers: it is not about a Machine of Drover.
	leave outcome = "leave"
	// wait until more facts about the Machine are known.
	wait outcome = "wait"
	// retry as soon as the Machine controller has reconciled the Machine.
	retry   outcome = "retry"
	approve outcome = "approve"
	deny    outcome = "deny"
)

// A verdict on a request.
type verdict struct {
	outcome outcome
	// message is the reason, for users.
	message string
}

// A machine has the facts about a Machine of Drover whose certificate is requested.
type machine struct {
	// node is the name that its Node may have.
	node string
	// cloudNamed reports whether the cloud decides on the name of the Node: a name counts if the
	// cloud reports it for the VM.
	cloudNamed bool
	// unnamed reports whether it is still unknown if the cloud decides on the name.
	unnamed bool
	// unobserved reports whether the Machine controller has not reconciled the Machine in this
	// process yet: joined and addresses are then unknown.
	unobserved bool
	// deleting reports whether the Machine is being deleted.
	deleting bool
	// joined is the name of the Node that is proven to be the Machine's, empty if there is none.
	joined string
	// taken reports whether a VM has joined as the Node with the Machine's token, and the Node is not
	// proven to be the Machine's. After a restore, that VM may be younger than the backup.
	taken bool
	// addresses of the VM, as its cloud and its guest report them.
	addresses []workernode.Address
}

// A claim is another Machine of the target cluster that has the name or address.
type claim struct {
	// guest reports whether only a guest, or a status, reports the name or address.
	guest bool
	// by describes the Machine.
	by string
}

// facts are the Machines of Drover that a request is about, each nil if there is none.
type facts struct {
	// requestor is the Machine whose Node sent the request.
	requestor *machine
	// subject is the Machine whose Node the certificate would be for.
	subject *machine
	// token is the Machine of the bootstrap token that sent the request.
	token *machine
	// policy of the target cluster.
	policy policy
	// claims of other Machines of the target cluster, by the normalized name or address.
	claims map[string]claim
}

// none reports whether the request is not about a Machine of Drover.
func (f facts) none() bool { return f.requestor == nil && f.subject == nil && f.token == nil }

// decide returns the verdict on a request.
func decide(r request, f facts) verdict {
	switch {
	case f.none():
		return verdict{outcome: leave}
	case r.signer == certificatesv1.KubeletServingSignerName:
		return decideServing(r, f)
	case r.signer == certificatesv1.KubeAPIServerClientKubeletSignerName:
		return decideClient(r, f)
	}
	return verdict{outcome: leave}
}

// decideServing allows a Node of Drover a certificate for its own name and the addresses of its VM.
func decideServing(r request, f facts) verdict {
	m := f.subject
	switch {
	case r.malformed != nil:
		return denied("%v", r.malformed)
	case m == nil || f.requestor == nil || f.requestor.node != m.node:
		return denied("%s asks for the certificate of %q: only %s may have one, and only of its own name", r.user, r.asked.Subject.CommonName, nodeUserPrefix+nodeOfFacts(f))
	case !slices.Contains(r.groups, nodesGroup):
		return denied("%s is not in the group %s", r.user, nodesGroup)
	}
	if v := checkSubject(r); v != nil {
		return *v
	}
	if !r.has(
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth},
	) {
		return denied("the usages are %v: must be digital signature, server auth and perhaps key encipherment", r.usages)
	}
	if v := checkNode(m); v != nil {
		return *v
	}
	return checkNames(r, f)
}

// checkNode accepts a Machine whose Node has the name and is proven to be the Machine's.
func checkNode(m *machine) *verdict {
	var v verdict
	switch {
	case m.unobserved:
		v = unobserved()
	case m.joined == "":
		v = verdict{wait, fmt.Sprintf("the Node %s has not been found to be the machine's yet", m.node)}
	case m.joined != m.node:
		v = denied("the machine's Node is %s", m.joined)
	case m.cloudNamed && !m.isAttested(m.node):
		v = verdict{wait, fmt.Sprintf("the cloud has not reported %s as a name of the VM: it reports %v", m.node, m.attestedNames())}
	default:
		return nil
	}
	return &v
}

// decideClient allows a bootstrap token of Drover to become the Node that it was made for, once. It
// allows a Node of Drover to renew its certificate.
func decideClient(r request, f facts) verdict {
	m := f.token
	switch {
	case r.malformed != nil:
		return denied("%v", r.malformed)
	case m == nil:
		m = f.requestor
		if m == nil {
			// The request comes from an administrator, or from a token that is not Drover's.
			return verdict{outcome: leave}
		}
		if !slices.Contains(r.groups, nodesGroup) {
			return denied("%s is not in the group %s", r.user, nodesGroup)
		}
	case !slices.Contains(r.groups, bootstrapGroup):
		return denied("%s is not in the group %s", r.user, bootstrapGroup)
	case m.joined != "":
		return denied("the machine has joined already, as the Node %s", m.joined)
	case m.taken:
		// If two VMs had certificates of one name, they would be one Node and run the same pods.
		return verdict{wait, fmt.Sprintf("a VM has joined as the Node %s already", m.node)}
	case m.deleting:
		return denied("the machine is being deleted")
	case m.unobserved:
		return unobserved()
	}
	if v := checkClientName(r, f, m); v != nil {
		return *v
	}
	if v := checkSubject(r); v != nil {
		return *v
	}
	if !r.has(
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
	) {
		return denied("the usages are %v: must be digital signature, client auth and perhaps key encipherment", r.usages)
	}
	if dns, addresses, others := r.names(); len(dns)+len(addresses)+len(others) > 0 {
		for _, a := range addresses {
			dns = append(dns, a.String())
		}
		return denied("%v must not be in it: a client certificate has no names beside its subject", slices.Concat(dns, others))
	}
	return verdict{approve, "the node's name is the machine's"}
}

// checkClientName accepts the name of the Machine's Node. If the cloud decides on the names of Nodes,
// a token may instead have a name that the cloud reports: the Node that would prove the name joins
// only afterwards.
func checkClientName(r request, f facts, m *machine) *verdict {
	cn, name := r.asked.Subject.CommonName, r.subject()
	var v verdict
	switch {
	case f.token == nil && cn == nodeUserPrefix+m.node && m.cloudNamed:
		return checkNode(m)
	case cn == nodeUserPrefix+m.node:
		return nil
	case f.token == nil || name == "" || !m.cloudNamed && !m.unnamed:
		v = denied("%s asks for the certificate of %q: must be %s", r.user, cn, nodeUserPrefix+m.node)
	case m.unnamed:
		v = verdict{wait, "it is not known yet whether the cloud decides on the name of the Node"}
	case f.policy.reservesName(name) != "":
		v = denied("the Node name %s is %s", name, f.policy.reservesName(name))
	case m.isAttested(name):
		return contested(f, "Node name", name, false)
	case len(m.attestedNames()) == 0:
		v = verdict{wait, fmt.Sprintf("the cloud has not reported %s as a name of the VM: it reports none", name)}
	default:
		v = denied("%s asks for the certificate of %q: must be of a name that the cloud reports of the VM: %v", r.user, cn, m.attestedNames())
	}
	return &v
}

// checkSubject checks the subject of a kubelet's certificate, except for its common name.
func checkSubject(r request) *verdict {
	if o := r.asked.Subject.Organization; !slices.Equal(o, []string{nodesGroup}) {
		v := denied("the organization is %q: must be %s", o, nodesGroup)
		return &v
	}
	if n := len(r.asked.Subject.Names); n > 2 {
		v := denied("the subject is %q: must have a common name and an organization, and nothing else", r.asked.Subject.String())
		return &v
	}
	return nil
}

func nodeOfFacts(f facts) string {
	if f.subject != nil {
		return f.subject.node
	}
	if f.requestor != nil {
		return f.requestor.node
	}
	return f.token.node
}

func unobserved() verdict {
	return verdict{retry, "the Machine has not been reconciled since provider-drover started"}
}

func denied(format string, args ...any) verdict {
	return verdict{deny, fmt.Sprintf(format, args...)}
}
