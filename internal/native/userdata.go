package native

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
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
	ref := source.UserDataSecretRef
	data, err := mr.SecretValue(ctx, c, vm.GetNamespace(), ref.Name, ref.Key)
	if err != nil {
		return "", &Error{Class: fn.ErrorTransient, What: "forProvider.userDataSecretRef", Err: err, Refused: true}
	}
	return data, nil
}
