package userdata

import (
	_ "embed"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	pathProxy = "/etc/drover/proxy.env"
	// proxyDropIn is the name of the drop-in of each unit that uses the proxy.
	proxyDropIn = "50-drover-proxy.conf"
)

// withoutProxy are hosts that must be reached without a proxy: the VM, and the metadata services of clouds,
// which identify a VM by its address. Domains of the cluster are added.
var withoutProxy = []string{"localhost", "127.0.0.1", "::1", "169.254.169.254", "metadata.google.internal", ".svc"}

//go:embed scripts/restart-containerd.sh
var restartContainerd string

var noProxyEntry = regexp.MustCompile(`^[A-Za-z0-9.*:/_\[\]-]+$`)

// applyProxy sets the proxy for the steps, and so for the package manager, and for services.
func (d *draft) applyProxy(in Input, at *field.Path) field.ErrorList {
	p := in.Settings.Proxy
	if p == nil {
		return nil
	}
	at = at.Child("proxy")
	if errs := checkProxy(*p, at); len(errs) > 0 {
		return errs
	}
	variables := proxyVariables(*p, in.Kubelet.ClusterDomain)
	maps.Copy(d.Environment, variables)
	content, err := environmentFile(variables)
	if err != nil {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, err.Error())}
	}
	d.Files = append(d.Files, File{Path: pathProxy, Content: content})
	units := []string{containerdUnitName, kubeletUnitName}
	if in.Profile != nil {
		units = append(units, in.Profile.Spec.ProxyUnits...)
	} else {
		// The containerd of the image is already running.
		d.runtime = append(d.runtime, Step{Name: "restart-containerd", Script: restartContainerd})
	}
	var errs field.ErrorList
	for _, u := range slices.Compact(slices.Sorted(slices.Values(units))) {
		errs = append(errs, d.addDropIn(u, proxyDropIn, "[Service]\nEnvironmentFile="+pathProxy+"\n", at)...)
	}
	return errs
}

func checkProxy(p machinev1alpha1.Proxy, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.HTTP == "" && p.HTTPS == "" {
		errs = append(errs, field.Required(at, "must have http, https or both"))
	}
	for name, u := range map[string]string{"http": p.HTTP, "https": p.HTTPS} {
		if u == "" {
			continue
		}
		if err := checkURL(u, at.Child(name)); err != nil {
			errs = append(errs, err)
		} else if strings.ContainsAny(u, "?#$%") {
			errs = append(errs, field.Invalid(at.Child(name), u, "must be a URL like http://proxy.example.org:3128"))
		}
	}
	for i, n := range p.NoProxy {
		if !noProxyEntry.MatchString(n) {
			errs = append(errs, field.Invalid(at.Child("noProxy").Index(i), n, "must be a host, a domain, an address or a network"))
		}
	}
	return errs
}

// proxyVariables in both spellings: curl reads http_proxy in lower case only.
func proxyVariables(p machinev1alpha1.Proxy, clusterDomain string) map[string]string {
	without := slices.Clone(withoutProxy)
	if clusterDomain != "" {
		without = append(without, "."+clusterDomain)
	}
	for _, n := range p.NoProxy {
		if !slices.Contains(without, n) {
			without = append(without, n)
		}
	}
	out := map[string]string{}
	for name, value := range map[string]string{"http_proxy": p.HTTP, "https_proxy": p.HTTPS, "no_proxy": strings.Join(without, ",")} {
		if value != "" {
			out[name], out[strings.ToUpper(name)] = value, value
		}
	}
	return out
}
