package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/terraform/v1alpha1"
	"github.com/drover-dev/drover/internal/terraform/plugin"
)

const (
	stateType corev1.SecretType = v1alpha1.Group + "/state"
	keyState                    = "state"

	// labelState is on each Secret with the Terraform state of a VM.
	labelState = v1alpha1.Group + "/state"
	// annotationOfVM on such a Secret is the namespace and the name of the VM, separated by a slash.
	annotationOfVM      = v1alpha1.Group + "/virtual-machine"
	saveTimeout         = 15 * time.Second
	saveRetry           = 500 * time.Millisecond
	statePrefix         = "terraform-state-"
	maxSecretsDataBytes = 1 << 20 // The limit of a Secret.
)

// A record is the saved data of a VM.
type record struct {
	// Provider and Version that wrote the state.
	Provider string `json:"provider"`
	Version  string `json:"version"`
	// Type of the resource.
	Type string `json:"type"`
	// Configuration is a digest of the fields that are not secret in the configuration that the VM
	// was created with.
	Configuration string `json:"configuration,omitempty"`
	// ExternalName of the VM.
	ExternalName string `json:"externalName"`
	// Failure is the reason why the VM was created only in part.
	Failure string            `json:"failure,omitempty"`
	State   plugin.SavedState `json:"state"`

	// saved is the content of the Secret.
	saved []byte
}

// A store keeps records in Secrets of one namespace.
type store struct {
	kube      client.Client
	namespace string
}

// key returns the key of the Secret. Its name has the UID, which a user cannot choose.
func (s *store) key(uid types.UID) types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: statePrefix + string(uid)}
}

// load returns the record of a VM, nil if there is none.
func (s *store) load(ctx context.Context, vm client.Object) (*record, error) {
	secret := &corev1.Secret{}
	err := s.kube.Get(ctx, s.key(vm.GetUID()), secret)
	if kerrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the Terraform state: %w", err)
	}
	r := &record{}
	if err := json.Unmarshal(secret.Data[keyState], r); err != nil {
		return nil, fmt.Errorf("cannot read the Terraform state in Secret %s/%s: it is damaged", secret.Namespace, secret.Name)
	}
	r.saved = secret.Data[keyState]
	return r, nil
}

// save saves the record of a VM, unless the Secret has it already. It retries for some time: the
// record is the only proof of a creation.
func (s *store) save(ctx context.Context, vm client.Object, r *record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if bytes.Equal(b, r.saved) {
		return nil
	}
	if len(b) > maxSecretsDataBytes {
		return fmt.Errorf("cannot save the Terraform state: it has %d bytes, a Secret holds %d", len(b), maxSecretsDataBytes)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	var last error
	err = wait.PollUntilContextCancel(ctx, saveRetry, true, func(ctx context.Context) (bool, error) {
		last = s.put(ctx, vm, b)
		return last == nil || kerrors.IsForbidden(last) || kerrors.IsInvalid(last), nil
	})
	if last != nil {
		return fmt.Errorf("cannot save the Terraform state: %w", last)
	}
	r.saved = b
	return err
}

func (s *store) put(ctx context.Context, vm client.Object, b []byte) error {
	key := s.key(vm.GetUID())
	secret := &corev1.Secret{}
	err := s.kube.Get(ctx, key, secret)
	if kerrors.IsNotFound(err) {
		return s.kube.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: key.Namespace, Name: key.Name,
				Labels:      map[string]string{labelState: "true"},
				Annotations: map[string]string{annotationOfVM: vm.GetNamespace() + "/" + vm.GetName()},
			},
			Type: stateType,
			Data: map[string][]byte{keyState: b},
		})
	}
	if err != nil {
		return err
	}
	secret.Data = map[string][]byte{keyState: b}
	return s.kube.Update(ctx, secret)
}

// forget deletes the record of a VM.
func (s *store) forget(ctx context.Context, uid types.UID) error {
	key := s.key(uid)
	err := s.kube.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete the Terraform state: %w", err)
	}
	return nil
}

// A finalizer deletes the record with its VM. A Secret cannot have an owner in another namespace.
type finalizer struct {
	resource.Finalizer
	store *store
}

// RemoveFinalizer deletes the record of a VM that is gone or no longer managed, and removes the
// finalizer.
func (f finalizer) RemoveFinalizer(ctx context.Context, obj resource.Object) error {
	if err := f.store.forget(ctx, obj.GetUID()); err != nil {
		return err
	}
	return f.Finalizer.RemoveFinalizer(ctx, obj)
}
