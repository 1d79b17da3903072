package mirror

import (
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Digest asks the mirror at address for the digest of an image by its public
// name, e.g. "docker.io/library/busybox:1.36.1".
func Digest(address, image string) (string, error) {
	ref, err := name.ParseReference(address+"/"+image, name.Insecure)
	if err != nil {
		return "", fmt.Errorf("digest of %s: %w", image, err)
	}
	found, err := remote.Head(ref)
	if err != nil {
		return "", fmt.Errorf("digest of %s: %w", image, err)
	}
	return found.Digest.String(), nil
}
