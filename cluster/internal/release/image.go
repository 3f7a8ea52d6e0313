package release

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

// images builds the images of the programs that are no packages of Crossplane: one for each name, with all its architectures.
func (b *builder) images(ctx context.Context) error {
	byName := map[string]map[string]string{}
	for _, program := range b.Images {
		platform, err := xpkg.PlatformOf(program)
		if err != nil {
			return err
		}
		name := filepath.Base(program)
		if byName[name] == nil {
			byName[name] = map[string]string{}
		}
		if other := byName[name][platform.Architecture]; other != "" {
			return fmt.Errorf("%s and %s are the same program for %s", other, program, platform.Architecture)
		}
		byName[name][platform.Architecture] = program
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		programs := byName[name]
		err := b.index(name, slices.Sorted(maps.Keys(programs)), func(arch string) (v1.Image, []licensed, error) {
			modules, err := b.modules(ctx, programs[arch])
			if err != nil {
				return nil, nil, err
			}
			built, err := xpkg.RuntimeImage(programs[arch], legalFiles(b.own, modules, b.Release)...)
			return built, modules, err
		})
		if err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
		b.Log("built %s", b.digests[len(b.digests)-1])
	}
	return nil
}
