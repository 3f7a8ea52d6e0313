package approver

import (
	"fmt"
	"net/netip"
	"slices"
)

// checkNames allows a certificate to hold fewer names than the machine has, as kubelets do not know
// all of them, but no other names. A name that is never allowed takes precedence over one that may be
// allowed later.
func checkNames(r request, f facts) verdict {
	dns, addresses, others := r.names()
	if len(others) > 0 {
		return denied("%q must not be in it: only DNS names and IP addresses may be", others)
	}
	if len(dns)+len(addresses) == 0 {
		return denied("no name and no address is in it")
	}
	out := verdict{approve, "the names and addresses are those of the machine"}
	consider := func(v *verdict) {
		if v != nil && out.outcome != deny && (v.outcome == deny || out.outcome == approve) {
			out = *v
		}
	}
	for _, n := range dns {
		consider(checkName(f, n))
	}
	for _, a := range addresses {
		consider(checkAddress(f, a))
	}
	return out
}

// checkName accepts the name of the Node, and names that the cloud reports.
func checkName(f facts, name string) *verdict {
	const what = "DNS name"
	m := f.subject
	if why := f.policy.reservesName(name); why != "" {
		v := denied("the %s %s must not be in it: it is %s", what, name, why)
		return &v
	}
	if name == normalized(m.node) {
		return nil
	}
	reported, guest := m.reports(name)
	if !reported || guest {
		return foreign(m, what, name, append([]string{normalized(m.node)}, m.attestedNames()...))
	}
	return contested(f, what, name, guest)
}

// checkAddress accepts addresses that the cloud reports. Addresses that only the guest reports must
// be in the networks for which the configuration allows that.
func checkAddress(f facts, a netip.Addr) *verdict {
	const what = "IP address"
	m := f.subject
	if why := f.policy.reservesAddress(a); why != "" {
		v := denied("the %s %s must not be in it: it is %s", what, a, why)
		return &v
	}
	reported, guest := m.reports(a.String())
	switch {
	case !reported:
		return foreign(m, what, a.String(), m.addressTexts())
	case guest && !f.policy.trusts(a):
		return &verdict{wait, fmt.Sprintf("only the guest of the VM reports the %s %s: add its network to spec.certificates.guestCIDRs of the cluster's configuration", what, a)}
	}
	return contested(f, what, a.String(), guest)
}

// contested waits while another Machine has the name or the address too. A claim that only a guest
// reports does not block a name that the cloud reports.
func contested(f facts, what, name string, guest bool) *verdict {
	c, ok := f.claims[normalized(name)]
	if !ok || c.guest && !guest {
		return nil
	}
	return &verdict{wait, fmt.Sprintf("the %s %s is also that of %s", what, name, c.by)}
}

// foreign waits for a cloud that has not reported any address yet.
func foreign(m *machine, what, name string, known []string) *verdict {
	v := denied("the %s %s is not the machine's: it has %v", what, name, known)
	if len(m.addressTexts()) == 0 {
		v = verdict{wait, "the cloud has not reported an address of the VM yet"}
	}
	return &v
}

// reports returns whether a name or an address belongs to the machine, and whether only its guest
// reports it.
func (m *machine) reports(name string) (reported, guest bool) {
	guest = true
	for _, a := range m.addresses {
		if normalized(a.Address) == name {
			reported, guest = true, guest && a.Guest
		}
	}
	return reported, reported && guest
}

// attestedNames are the host names that the cloud reports.
func (m *machine) attestedNames() []string {
	var out []string
	for _, a := range m.addresses {
		if !a.Guest && !isIP(a.Address) {
			out = append(out, normalized(a.Address))
		}
	}
	return out
}

// isAttested reports whether the cloud reports a host name.
func (m *machine) isAttested(name string) bool { return slices.Contains(m.attestedNames(), name) }

// addressTexts are the IP addresses that the cloud or the guest reports.
func (m *machine) addressTexts() []string {
	var out []string
	for _, a := range m.addresses {
		if isIP(a.Address) {
			out = append(out, normalized(a.Address))
		}
	}
	return out
}

func isIP(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}
