package approver

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

const (
	nodeUserPrefix = "system:node:"
	nodesGroup     = "system:nodes"
	bootstrapUser  = "system:bootstrap:"
	bootstrapGroup = "system:bootstrappers"
)

// A request has the contents and the sender of a CertificateSigningRequest.
type request struct {
	signer string
	// user and groups are those that the API server authenticated.
	user   string
	groups []string
	usages []certificatesv1.KeyUsage
	// asked is nil if the request could not be parsed, and malformed is the error.
	asked     *x509.CertificateRequest
	malformed error
}

func requestOf(csr *certificatesv1.CertificateSigningRequest) request {
	r := request{signer: csr.Spec.SignerName, user: csr.Spec.Username, groups: csr.Spec.Groups, usages: csr.Spec.Usages}
	r.asked, r.malformed = parse(csr.Spec.Request)
	return r
}

func parse(text []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("it is not one PEM block of type CERTIFICATE REQUEST")
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if err := asked.CheckSignature(); err != nil {
		return nil, fmt.Errorf("it is not signed with its key: %w", err)
	}
	return asked, nil
}

// decided reports whether a request already has a verdict or a certificate.
func decided(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Certificate) > 0 || len(csr.Status.Conditions) > 0
}

// requestor returns the name of the node that sent the request, empty for another sender.
func (r request) requestor() string { return nodeOf(r.user) }

// subject returns the name of the node that the certificate would be for, empty if it is for no node.
func (r request) subject() string {
	if r.asked == nil {
		return ""
	}
	return nodeOf(r.asked.Subject.CommonName)
}

// token returns the ID of the bootstrap token that sent the request, empty for another sender.
func (r request) token() string {
	if id, ok := strings.CutPrefix(r.user, bootstrapUser); ok {
		return id
	}
	return ""
}

func nodeOf(user string) string {
	if name, ok := strings.CutPrefix(user, nodeUserPrefix); ok {
		return name
	}
	return ""
}

// has reports whether the request has exactly the usages of one of the sets.
func (r request) has(sets ...[]certificatesv1.KeyUsage) bool {
	got := slices.Sorted(slices.Values(r.usages))
	for _, want := range sets {
		if slices.Equal(got, slices.Sorted(slices.Values(want))) {
			return true
		}
	}
	return false
}

// names returns the names that the certificate would have, by kind.
func (r request) names() (dns []string, addresses []netip.Addr, others []string) {
	for _, n := range r.asked.DNSNames {
		dns = append(dns, strings.ToLower(n))
	}
	for _, ip := range r.asked.IPAddresses {
		if a, ok := netip.AddrFromSlice(ip); ok {
			addresses = append(addresses, a.Unmap())
			continue
		}
		others = append(others, ip.String())
	}
	others = append(others, r.asked.EmailAddresses...)
	for _, u := range r.asked.URIs {
		others = append(others, u.String())
	}
	return dns, addresses, others
}

// wanted returns all names and addresses that the certificate would be valid for, normalized.
func (r request) wanted() []string {
	if r.asked == nil {
		return nil
	}
	dns, addresses, _ := r.names()
	var out []string
	for _, n := range append(dns, r.subject()) {
		if n != "" {
			out = append(out, normalized(n))
		}
	}
	for _, a := range addresses {
		out = append(out, normalized(a.String()))
	}
	return out
}
