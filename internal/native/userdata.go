package native

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"

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

// EncodeUserData returns user data as base64. User data of more than most bytes is compressed: cloud-init and Ignition
// uncompress it. If it has more than most bytes even then, the error is an invalid userDataSecretRef.
func EncodeUserData(data string, most int) (string, error) {
	raw := []byte(data)
	if len(raw) > most {
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err == nil {
			_, err = w.Write(raw)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			return "", err
		}
		raw = b.Bytes()
	}
	if len(raw) > most {
		return "", Invalid("userDataSecretRef", "the user data has %d bytes, and %d bytes compressed: at most %d are allowed", len(data), len(raw), most)
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}
