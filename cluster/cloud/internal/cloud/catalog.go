package cloud

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drover-dev/drover/internal/localcloud"
)

// images are the simulated images by name, each with the osImage of its Nodes.
var images = map[string]string{
	localcloud.ImageUbuntu2404: "Ubuntu 24.04.3 LTS",
	localcloud.ImageDebian12:   "Debian GNU/Linux 12 (bookworm)",
}

type size struct{ cpu, memory resource.Quantity }

var sizes = map[string]size{
	localcloud.SizeSmall:  {resource.MustParse("1"), resource.MustParse("2Gi")},
	localcloud.SizeMedium: {resource.MustParse("2"), resource.MustParse("4Gi")},
	localcloud.SizeLarge:  {resource.MustParse("4"), resource.MustParse("16Gi")},
	localcloud.SizeXLarge: {resource.MustParse("16"), resource.MustParse("128Gi")},
}

// Images lists the images that a VM can boot: first the simulated ones, then the real ones that
// were built.
func (c *Cloud) Images() ([]localcloud.Image, error) {
	out := []localcloud.Image{}
	for _, name := range slices.Sorted(maps.Keys(images)) {
		out = append(out, localcloud.Image{Name: name, Kind: localcloud.ImageSimulated})
	}
	names, err := c.machines.ImageNames()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		out = append(out, localcloud.Image{Name: name, Kind: localcloud.ImageReal})
	}
	return out, nil
}

func isSimulated(image string) bool {
	_, ok := images[image]
	return ok
}
