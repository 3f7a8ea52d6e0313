// Package token keeps a ServiceAccount token in a file, as the kubelet does for a pod.
package token

import (
	"context"
	"fmt"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/cluster/internal/files"
)

const (
	lifetime = time.Hour
	retry    = 5 * time.Second
)

// Request requests a token and writes it to path. It returns when the token must be renewed.
func Request(ctx context.Context, c client.Client, namespace, serviceAccount, path string) (renew time.Time, err error) {
	seconds := int64(lifetime.Seconds())
	req := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serviceAccount}}
	asked := time.Now()
	if err := c.SubResource("token").Create(ctx, sa, req); err != nil {
		return time.Time{}, fmt.Errorf("token of ServiceAccount %s/%s: %w", namespace, serviceAccount, err)
	}
	if err := files.Write(path, []byte(req.Status.Token)); err != nil {
		return time.Time{}, err
	}
	return RenewAt(asked, req.Status.ExpirationTimestamp.Time), nil
}

// RenewAt returns when to renew a token: at two thirds of its lifetime, so that there is time to
// retry if the API server is not available.
func RenewAt(asked, expires time.Time) time.Time {
	return asked.Add(expires.Sub(asked) * 2 / 3)
}

// Keep renews a token until ctx ends. log receives the errors.
func Keep(ctx context.Context, c client.Client, namespace, serviceAccount, path string, renew time.Time, log func(error)) {
	for {
		select {
		case <-time.After(time.Until(renew)):
		case <-ctx.Done():
			return
		}
		next, err := Request(ctx, c, namespace, serviceAccount, path)
		if err != nil {
			if ctx.Err() == nil {
				log(err)
			}
			next = time.Now().Add(retry)
		}
		renew = next
	}
}
