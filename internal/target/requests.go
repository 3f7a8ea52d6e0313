package target

import (
	"context"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

const byUser = "user"

// requests is the watch of a cluster's CertificateSigningRequests of one signer.
type requests struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

func startRequests(kube kubernetes.Interface, signer string, observe func(name string)) (*requests, error) {
	r := &requests{informer: certificatesinformers.NewFilteredCertificateSigningRequestInformer(listed{kube}, 0, cache.Indexers{byUser: func(obj any) ([]string, error) {
		csr, ok := obj.(*certificatesv1.CertificateSigningRequest)
		if !ok {
			return nil, nil
		}
		return []string{csr.Spec.Username}, nil
	}}, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.signerName", signer).String()
	})}
	if err := r.informer.SetTransform(func(obj any) (any, error) {
		if csr, ok := obj.(*certificatesv1.CertificateSigningRequest); ok {
			csr.ManagedFields = nil
		}
		return obj, nil
	}); err != nil {
		return nil, err
	}
	// The condition Authorized reports missing rights, and Reachable an outage.
	if err := r.informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return nil, err
	}
	handle := func(obj any) {
		if csr, ok := obj.(*certificatesv1.CertificateSigningRequest); ok {
			observe(csr.GetName())
		}
	}
	if _, err := r.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, obj any) { handle(obj) }}); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	budget := &cacheBudget{exceeded: func(error) {
		// Its certificates wait until the watch is restarted, with the next connection.
		stop()
		_ = r.informer.GetIndexer().Replace(nil, "")
	}}
	if _, err := r.informer.AddEventHandler(budget.handler(sizeOf)); err != nil {
		stop()
		return nil, err
	}
	go r.informer.RunWithContext(ctx)
	return r, nil
}

// signersOf returns the signers of the certificates that Drover may decide on in a target cluster.
func signersOf(c v1alpha1.Certificates) []string {
	var out []string
	if c.Serving != v1alpha1.CertificatesIgnore {
		out = append(out, certificatesv1.KubeletServingSignerName)
	}
	if c.Client != v1alpha1.ClientCertificatesIgnore {
		out = append(out, certificatesv1.KubeAPIServerClientKubeletSignerName)
	}
	return out
}

// requiredSigners returns those of signersOf whose rights are required.
func requiredSigners(c v1alpha1.Certificates) []string {
	return slices.DeleteFunc(signersOf(c), func(signer string) bool {
		return signer == certificatesv1.KubeAPIServerClientKubeletSignerName && c.Client != v1alpha1.ClientCertificatesApprove
	})
}
