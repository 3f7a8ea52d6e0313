package inventories

import (
	"context"

	awsv1alpha1 "github.com/drover-dev/drover/apis/aws/v1alpha1"
	"github.com/drover-dev/drover/internal/cloud/aws"
	"github.com/drover-dev/drover/internal/inventory"
)

type (
	awsConfig    = *awsv1alpha1.ClusterProviderConfig
	awsInventory = *awsv1alpha1.VirtualMachineInventory
)

var clouds = []cloud{
	group[awsConfig, awsInventory]{
		version: awsv1alpha1.SchemeGroupVersion, add: awsv1alpha1.AddToScheme, list: &awsv1alpha1.VirtualMachineInventoryList{},
		connect: func(ctx context.Context, secret []byte, c awsConfig, i awsInventory) (inventory.Lister, error) {
			return aws.New(ctx, aws.Options{Credentials: secret, Endpoint: c.Spec.Endpoint, Region: i.Spec.ForProvider.Region})
		},
	},
}
