package target

import (
	"net/http"
	"reflect"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	storageclient "k8s.io/client-go/kubernetes/typed/storage/v1"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"github.com/drover-dev/drover/internal/stored"
)

// A tolerant client decodes the objects of a target cluster without the fields that do not fit. A kubelet may write a time with a year of
// five digits by protobuf. An API server sends it as JSON, in which no client can decode it: one Node would end the
// watch of all Nodes, and one pod the drain of its Node.
type tolerant struct {
	kubernetes.Interface
	core         coreclient.CoreV1Interface
	policy       policyclient.PolicyV1Interface
	storage      storageclient.StorageV1Interface
	certificates certificatesclient.CertificatesV1Interface
}

// CoreV1 implements kubernetes.Interface.
func (t *tolerant) CoreV1() coreclient.CoreV1Interface { return t.core }

// PolicyV1 implements kubernetes.Interface.
func (t *tolerant) PolicyV1() policyclient.PolicyV1Interface { return t.policy }

// StorageV1 implements kubernetes.Interface.
func (t *tolerant) StorageV1() storageclient.StorageV1Interface { return t.storage }

// CertificatesV1 implements kubernetes.Interface.
func (t *tolerant) CertificatesV1() certificatesclient.CertificatesV1Interface { return t.certificates }

// newClient returns a client of a cluster. Its calls share the limits of the configuration.
func newClient(cfg *rest.Config, c *http.Client) (kubernetes.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	all, err := kubernetes.NewForConfigAndClient(cfg, c)
	if err != nil {
		return nil, err
	}
	// The client shares the rate limiter that NewForConfigAndClient gave to each of its groups.
	cfg.RateLimiter = all.CoreV1().RESTClient().GetRateLimiter()
	clients := map[schema.GroupVersion]rest.Interface{}
	for _, gv := range []schema.GroupVersion{corev1.SchemeGroupVersion, policyv1.SchemeGroupVersion, storagev1.SchemeGroupVersion, certificatesv1.SchemeGroupVersion} {
		if clients[gv], err = newTolerantREST(cfg, gv, c); err != nil {
			return nil, err
		}
	}
	return &tolerant{
		Interface:    all,
		core:         coreclient.New(clients[corev1.SchemeGroupVersion]),
		policy:       policyclient.New(clients[policyv1.SchemeGroupVersion]),
		storage:      storageclient.New(clients[storagev1.SchemeGroupVersion]),
		certificates: certificatesclient.New(clients[certificatesv1.SchemeGroupVersion]),
	}, nil
}

func newTolerantREST(cfg *rest.Config, gv schema.GroupVersion, c *http.Client) (rest.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.GroupVersion, cfg.APIPath = &gv, "/apis"
	if gv.Group == "" {
		cfg.APIPath = "/api"
	}
	cfg.NegotiatedSerializer = tolerantSerializer{rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion()}
	return rest.RESTClientForConfigAndClient(cfg, c)
}

// A tolerantSerializer has tolerant decoders.
type tolerantSerializer struct{ runtime.NegotiatedSerializer }

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (s tolerantSerializer) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return tolerantDecoder{s.NegotiatedSerializer.DecoderToVersion(d, gv)}
}

// A tolerantDecoder drops the fields that the strict decoder cannot decode.
type tolerantDecoder struct{ strict runtime.Decoder }

// Decode implements runtime.Decoder.
func (d tolerantDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := d.strict.Decode(data, defaults, into)
	if err == nil {
		return obj, kind, nil
	}
	var is struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(data, &is) != nil {
		return obj, kind, err
	}
	found := schema.FromAPIVersionAndKind(is.APIVersion, is.Kind)
	parts, serr := scheme.Scheme.New(found)
	if serr != nil {
		return obj, kind, err
	}
	if sameType(parts, into) {
		parts = into
	}
	var dropped stored.Undecoded
	if stored.Unmarshal(data, parts, &dropped) != nil || dropped == "" {
		return obj, kind, err
	}
	parts.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return parts, &found, nil
}

func sameType(a, b runtime.Object) bool {
	return b != nil && reflect.TypeOf(a) == reflect.TypeOf(b)
}
