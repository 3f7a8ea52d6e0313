package userdata

import (
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/jsonmap"
)

const kubeletKind = "KubeletConfiguration"

// kubeletUnit leaves the kubelet to systemd: it waits for the network, is restarted for ever, and reads its
// flags from a file that a user may edit.
func kubeletUnit(executable string) string {
	return `[Unit]
Description=kubelet: the Kubernetes node agent
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=network-online.target containerd.service
StartLimitIntervalSec=0

[Service]
EnvironmentFile=-` + pathKubeletFlags + `
ExecStart=` + executable + ` --bootstrap-kubeconfig=` + pathBootstrapConfig + ` --kubeconfig=/etc/kubernetes/kubelet.conf --config=` + pathKubeletConfig + ` $KUBELET_EXTRA_ARGS
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
`
}

// kubeletConfiguration is Drover's defaults, overridden by the class's configuration: only users of the API
// server may access the kubelet, the API server authorizes them, and the client certificate is rotated.
//
// The cluster signs the serving certificate once it is approved: Drover does that, unless the configuration has
// it ignore these requests. Then the class has to set serverTLSBootstrap to false, since a kubelet without a
// certificate refuses all clients.
func kubeletConfiguration(in Input, path *field.Path) (string, field.ErrorList) {
	k := in.Kubelet
	base, err := encode(kubeletv1.KubeletConfiguration{
		Authentication: kubeletv1.KubeletAuthentication{
			Anonymous: kubeletv1.KubeletAnonymousAuthentication{Enabled: ptr.To(false)},
			Webhook:   kubeletv1.KubeletWebhookAuthentication{Enabled: ptr.To(true)},
			X509:      kubeletv1.KubeletX509Authentication{ClientCAFile: pathCA},
		},
		Authorization:            kubeletv1.KubeletAuthorization{Mode: kubeletv1.KubeletAuthorizationModeWebhook},
		CgroupDriver:             "systemd",
		ClusterDNS:               k.ClusterDNS,
		ClusterDomain:            k.ClusterDomain,
		ContainerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
		MaxPods:                  ptr.Deref(k.MaxPods, 0),
		RotateCertificates:       true,
		ServerTLSBootstrap:       true,
	})
	if err != nil {
		return "", field.ErrorList{field.InternalError(path, err)}
	}
	if in.Profile != nil {
		base["resolvConf"] = pathResolvConf
	}
	// The kubelet has no read-only port by default, except if it is configured by flags. It is set here, where an
	// auditor looks for it.
	base["readOnlyPort"] = int64(0)
	base["apiVersion"] = kubeletv1.SchemeGroupVersion.String()
	base["kind"] = kubeletKind

	over, ofClass, errs := overlay(in, path.Child("configuration"))
	register, terrs := registerWithTaints(ofClass, in)
	if errs = append(errs, terrs...); len(errs) > 0 {
		return "", errs
	}
	jsonmap.Merge(base, over)
	base["registerWithTaints"] = register

	b, err := yaml.Marshal(base)
	if err != nil {
		return "", field.ErrorList{field.InternalError(path, err)}
	}
	// Each user of the VM can read the file.
	if err := checkContent(string(b), path); err != nil {
		return "", field.ErrorList{err}
	}
	return string(b), nil
}

// overlay returns the class's configuration, which must be fields of the KubeletConfiguration of the
// kubelet's version.
func overlay(in Input, path *field.Path) (map[string]any, []corev1.Taint, field.ErrorList) {
	k := in.Kubelet
	if k.Configuration == nil || len(k.Configuration.Raw) == 0 {
		return nil, nil, nil
	}
	c := &laterConfiguration{}
	strict, err := kjson.UnmarshalStrict(k.Configuration.Raw, c)
	if err != nil {
		return nil, nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("must be fields of a %s of %s: %v", kubeletKind, kubeletv1.SchemeGroupVersion, err))}
	}
	var errs field.ErrorList
	for _, err := range strict {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("must be fields of a %s of %s: %v", kubeletKind, kubeletv1.SchemeGroupVersion, err)))
	}
	if c.TypeMeta != (metav1.TypeMeta{}) && c.TypeMeta != (metav1.TypeMeta{APIVersion: kubeletv1.SchemeGroupVersion.String(), Kind: kubeletKind}) {
		errs = append(errs, field.NotSupported(path.Child("apiVersion"), c.APIVersion+" "+c.Kind, []string{kubeletv1.SchemeGroupVersion.String() + " " + kubeletKind}))
	}
	if len(errs) > 0 {
		return nil, nil, errs
	}
	m := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(k.Configuration.Raw, &m); err != nil {
		return nil, nil, field.ErrorList{field.InternalError(path, err)}
	}
	b, err := yaml.Marshal(m)
	if err != nil {
		return nil, nil, field.ErrorList{field.InternalError(path, err)}
	}
	if err := checkContent(string(b), path); err != nil {
		return nil, nil, field.ErrorList{err}
	}
	return m, c.RegisterWithTaints, checkVersion(in.Version, m, c.FeatureGates, path)
}

// encode leaves out fields that are not set but encoded nevertheless, such as syncFrequency: 0s.
func encode(c kubeletv1.KubeletConfiguration) (map[string]any, error) {
	m, err := toMap(c)
	if err != nil {
		return nil, err
	}
	unset, err := toMap(kubeletv1.KubeletConfiguration{})
	if err != nil {
		return nil, err
	}
	subtract(m, unset)
	return m, nil
}

func toMap(v any) (map[string]any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	m := map[string]any{}
	return m, kjson.UnmarshalCaseSensitivePreserveInts(b, &m)
}

func subtract(m, unset map[string]any) {
	for k, v := range m {
		u, ok := unset[k]
		if !ok {
			continue
		}
		if reflect.DeepEqual(v, u) {
			delete(m, k)
			continue
		}
		vm, vok := v.(map[string]any)
		um, uok := u.(map[string]any)
		if vok && uok {
			subtract(vm, um)
		}
	}
}
