package inventories

import (
	"context"

	digitaloceanv1alpha1 "github.com/drover-dev/drover/apis/digitalocean/v1alpha1"
	kubevirtv1alpha1 "github.com/drover-dev/drover/apis/kubevirt/v1alpha1"
	awsv1alpha1 "github.com/drover-dev/drover/apis/upjet-aws/v1alpha1"
	azurev1alpha1 "github.com/drover-dev/drover/apis/upjet-azure/v1alpha1"
	upjetgcpv1alpha1 "github.com/drover-dev/drover/apis/upjet-gcp/v1alpha1"
	yandexv1alpha1 "github.com/drover-dev/drover/apis/yandex/v1alpha1"
	"github.com/drover-dev/drover/internal/cloud/aws"
	"github.com/drover-dev/drover/internal/cloud/azure"
	"github.com/drover-dev/drover/internal/cloud/digitalocean"
	"github.com/drover-dev/drover/internal/cloud/gcp"
	"github.com/drover-dev/drover/internal/cloud/kubevirt"
	"github.com/drover-dev/drover/internal/cloud/yandex"
	"github.com/drover-dev/drover/internal/inventory"
)

type (
	awsConfig             = *awsv1alpha1.ClusterProviderConfig
	awsInventory          = *awsv1alpha1.VirtualMachineInventory
	azureConfig           = *azurev1alpha1.ClusterProviderConfig
	azureInventory        = *azurev1alpha1.VirtualMachineInventory
	digitaloceanConfig    = *digitaloceanv1alpha1.ClusterProviderConfig
	digitaloceanInventory = *digitaloceanv1alpha1.VirtualMachineInventory
	kubevirtConfig        = *kubevirtv1alpha1.ClusterProviderConfig
	kubevirtInventory     = *kubevirtv1alpha1.VirtualMachineInventory
	yandexConfig          = *yandexv1alpha1.ClusterProviderConfig
	yandexInventory       = *yandexv1alpha1.VirtualMachineInventory
	gcpConfig             = *upjetgcpv1alpha1.ClusterProviderConfig
	gcpInventory          = *upjetgcpv1alpha1.VirtualMachineInventory
)

var clouds = []cloud{
	group[awsConfig, awsInventory]{
		version: awsv1alpha1.SchemeGroupVersion, add: awsv1alpha1.AddToScheme, list: &awsv1alpha1.VirtualMachineInventoryList{},
		connect: func(ctx context.Context, secret []byte, c awsConfig, i awsInventory) (inventory.Lister, error) {
			return aws.New(ctx, aws.Options{Credentials: secret, Endpoint: c.Spec.Endpoint, CABundle: c.Spec.CABundle, Region: i.Spec.ForProvider.Region})
		},
	},
	group[azureConfig, azureInventory]{
		version: azurev1alpha1.SchemeGroupVersion, add: azurev1alpha1.AddToScheme, list: &azurev1alpha1.VirtualMachineInventoryList{},
		connect: func(ctx context.Context, secret []byte, c azureConfig, _ azureInventory) (inventory.Lister, error) {
			return azure.New(ctx, azure.Options{Credentials: secret, Endpoint: c.Spec.Endpoint, CABundle: c.Spec.CABundle, SubscriptionID: c.Spec.SubscriptionID})
		},
	},
	group[gcpConfig, gcpInventory]{
		version: upjetgcpv1alpha1.SchemeGroupVersion, add: upjetgcpv1alpha1.AddToScheme, list: &upjetgcpv1alpha1.VirtualMachineInventoryList{},
		connect: func(ctx context.Context, secret []byte, c gcpConfig, _ gcpInventory) (inventory.Lister, error) {
			return gcp.New(ctx, gcp.Options{Credentials: secret, Endpoint: c.Spec.Endpoint, CABundle: c.Spec.CABundle, ProjectID: c.Spec.ProjectID})
		},
	},
	group[digitaloceanConfig, digitaloceanInventory]{
		version: digitaloceanv1alpha1.SchemeGroupVersion, add: digitaloceanv1alpha1.AddToScheme, list: &digitaloceanv1alpha1.VirtualMachineInventoryList{},
		connect: func(ctx context.Context, secret []byte, c digitaloceanConfig, _ digitaloceanInventory) (inventory.Lister, error) {
			return digitalocean.New(ctx, digitalocean.Options{Credentials: secret, Endpoint: c.Spec.Endpoint, CABundle: c.Spec.CABundle})
		},
	},
	group[kubevirtConfig, kubevirtInventory]{
		version: kubevirtv1alpha1.SchemeGroupVersion, add: kubevirtv1alpha1.AddToScheme, list: &kubevirtv1alpha1.VirtualMachineInventoryList{},
		connect: func(ctx context.Context, secret []byte, c kubevirtConfig, i kubevirtInventory) (inventory.Lister, error) {
			return kubevirt.New(ctx, kubevirt.Options{Credentials: secret, Endpoint: c.Spec.Endpoint, Namespace: i.Spec.ForProvider.Namespace})
		},
	},
	group[yandexConfig, yandexInventory]{
		version: yandexv1alpha1.SchemeGroupVersion, add: yandexv1alpha1.AddToScheme, list: &yandexv1alpha1.VirtualMachineInventoryList{},
		connect: func(ctx context.Context, secret []byte, c yandexConfig, _ yandexInventory) (inventory.Lister, error) {
			return yandex.New(ctx, yandex.Options{Credentials: secret, Endpoint: c.Spec.Endpoint, CABundle: c.Spec.CABundle, FolderID: c.Spec.FolderID})
		},
	},
}
