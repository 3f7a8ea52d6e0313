package vsphere

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/gzipb64"
)

// Keys that cloud-init and Ignition read, and the encoding of their values. Both understand gzip, and
// the size of a VM's configuration is limited.
const (
	keyUserData = "guestinfo.userdata"
	keyMetadata = "guestinfo.metadata"
	keyIgnition = "guestinfo.ignition.config.data"

	suffixEncoding = ".encoding"
	encoding       = "gzip+base64"
)

// extraConfig returns the options of a VM's configuration for its guest, in a stable order.
func extraConfig(p v1alpha1.VirtualMachineParameters, name, instanceUUID, userData string) ([]types.BaseOptionValue, error) {
	kv := maps.Clone(p.ExtraConfig)
	if kv == nil {
		kv = map[string]string{}
	}
	set := func(key, value string) error {
		e, err := gzipb64.Encode([]byte(value))
		kv[key], kv[key+suffixEncoding] = e, encoding
		return err
	}
	if g := p.GuestInfo; g != nil {
		if err := setGuestInfo(set, *g, name, instanceUUID, userData); err != nil {
			return nil, err
		}
	}
	out := make([]types.BaseOptionValue, 0, len(kv))
	for _, k := range slices.Sorted(maps.Keys(kv)) {
		out = append(out, &types.OptionValue{Key: k, Value: kv[k]})
	}
	return out, nil
}

func setGuestInfo(set func(key, value string) error, g v1alpha1.GuestInfo, name, instanceUUID, userData string) error {
	if g.Format == v1alpha1.FormatIgnition {
		return set(keyIgnition, userData)
	}
	if userData != "" {
		if err := set(keyUserData, userData); err != nil {
			return err
		}
	}
	metadata := ""
	if g.Metadata != nil {
		metadata = *g.Metadata
	} else {
		b, err := json.Marshal(map[string]string{"instance-id": instanceUUID, "local-hostname": name})
		if err != nil {
			return err
		}
		metadata = string(b)
	}
	return set(keyMetadata, metadata)
}

// readUserData returns the user data in plain text.
func (x *external) readUserData(ctx context.Context, vm *v1alpha1.VirtualMachine) (string, error) {
	g := vm.Spec.ForProvider.GuestInfo
	switch {
	case g == nil:
		return "", nil
	case g.UserData != nil:
		return *g.UserData, nil
	case g.UserDataSecretRef == nil:
		return "", nil
	}
	data, err := mr.SecretValue(ctx, x.kube, vm.GetNamespace(), g.UserDataSecretRef.Name, g.UserDataSecretRef.Key)
	if err != nil {
		return "", fmt.Errorf("forProvider.guestInfo.userDataSecretRef: %w", err)
	}
	return data, nil
}
