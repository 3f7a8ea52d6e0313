package xpkg

import (
	"context"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// PushImage pushes the RuntimeImage of a static Go binary as reference, a repository with a tag. Credentials are those of
// docker login. It returns the reference with the digest.
func PushImage(ctx context.Context, binary, reference string) (string, error) {
	ref, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return "", err
	}
	image, err := RuntimeImage(binary)
	if err != nil {
		return "", err
	}
	digest, err := image.Digest()
	if err != nil {
		return "", err
	}
	return ref.String() + "@" + digest.String(), remote.Write(ref, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}
