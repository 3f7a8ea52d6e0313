package native

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
)

// userDataOf returns a function that reads the user data of a VM. It reads the Secret once.
func userDataOf[T Resource](c client.Reader, vm T) UserData {
	var read bool
	var data string
	return func(ctx context.Context) (string, error) {
		if read {
			return data, nil
		}
		var err error
		data, err = readUserData(ctx, c, vm)
		read = err == nil
		return data, err
	}
}

func readUserData[T Resource](ctx context.Context, c client.Reader, vm T) (string, error) {
	source := vm.UserDataSource()
	switch {
	case source.UserData != nil:
		return *source.UserData, nil
	case source.UserDataSecretRef == nil:
		return "", nil
	}
	const field = "forProvider.userDataSecretRef"
	ref := source.UserDataSecretRef
	s := &corev1.Secret{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: vm.GetNamespace(), Name: ref.Name}, s); err != nil {
		return "", &Error{Class: fn.ErrorTransient, What: field, Err: fmt.Errorf("cannot get Secret %q: %w", ref.Name, err), Refused: true}
	}
	b, ok := s.Data[ref.Key]
	if !ok {
		return "", &Error{Class: fn.ErrorTransient, What: field, Err: fmt.Errorf("no key %q in Secret %q, which has only %q", ref.Key, ref.Name, slices.Sorted(maps.Keys(s.Data))), Refused: true}
	}
	return string(b), nil
}
