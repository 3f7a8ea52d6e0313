package release

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

// Names that cosign expects in a signature.
const (
	simpleSigning       = types.MediaType("application/vnd.dev.cosign.simplesigning.v1+json")
	signatureAnnotation = "dev.cosignproject.cosign/signature"
)

// passwordVariable is the environment variable with the password of an encrypted key, as for
// cosign.
const passwordVariable = "COSIGN_PASSWORD"

// A Signer signs a release so that "cosign verify --key" accepts it.
//
// The same content has the same signature, so that a release that is built or pushed again is
// identical.
type Signer struct{ key *ecdsa.PrivateKey }

// LoadSigner reads a private key: one of "cosign generate-key-pair", whose password is in
// COSIGN_PASSWORD, or a PKCS #8 or SEC 1 key in PEM. reference is the name of its file, or env://
// followed by the name of the environment variable with its content.
func LoadSigner(reference string) (*Signer, error) {
	var content []byte
	if name, ok := strings.CutPrefix(reference, "env://"); ok {
		if content = []byte(os.Getenv(name)); len(content) == 0 {
			return nil, fmt.Errorf("signing key %s: the environment variable is empty", reference)
		}
	} else {
		var err error
		if content, err = os.ReadFile(reference); err != nil {
			return nil, fmt.Errorf("signing key: %w", err)
		}
	}
	key, err := parseKey(content, []byte(os.Getenv(passwordVariable)))
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", reference, err)
	}
	return &Signer{key}, nil
}

func parseKey(content, password []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, errors.New("it is not in PEM")
	}
	der := block.Bytes
	var key any
	var err error
	switch block.Type {
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		if der, err = encrypted.Decrypt(der, password); err != nil {
			return nil, fmt.Errorf("cannot decrypt it with the password in %s: %w", passwordVariable, err)
		}
		key, err = x509.ParsePKCS8PrivateKey(der)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(der)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(der)
	default:
		return nil, fmt.Errorf("it is a %s, must be a private key of cosign, PKCS #8 or SEC 1", block.Type)
	}
	if err != nil {
		return nil, err
	}
	ecdsaKey, ok := key.(*ecdsa.PrivateKey)
	if !ok || ecdsaKey.Curve != elliptic.P256() {
		return nil, fmt.Errorf("it is a %T, must be an ECDSA key on the curve P-256, as cosign makes them", key)
	}
	return ecdsaKey, nil
}

// PublicKey returns the public key in PEM.
func (s *Signer) PublicKey() ([]byte, error) {
	return cryptoutils.MarshalPublicKeyToPEM(s.key.Public())
}

// sign returns the signature of a message in base64. Without a source of randomness Go signs as
// specified by RFC 6979: the same message has the same signature.
func (s *Signer) sign(message []byte) (string, error) {
	digest := sha256.Sum256(message)
	b, err := s.key.Sign(nil, digest[:], crypto.SHA256)
	return base64.StdEncoding.EncodeToString(b), err
}

// signatureOf returns the image that cosign looks for beside a manifest, under signatureTag.
// reference is the name that the manifest is published with, without tag and digest.
func (s *Signer) signatureOf(reference string, digest v1.Hash) (v1.Image, error) {
	message, err := json.Marshal(payload.SimpleContainerImage{
		Critical: payload.Critical{
			Identity: payload.Identity{DockerReference: reference},
			Image:    payload.Image{DockerManifestDigest: digest.String()},
			Type:     payload.CosignSignatureType,
		},
	})
	if err != nil {
		return nil, err
	}
	signature, err := s.sign(message)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return mutate.Append(base, mutate.Addendum{
		Layer:       static.NewLayer(message, simpleSigning),
		Annotations: map[string]string{signatureAnnotation: signature},
	})
}

// signatureTag returns the tag under which cosign looks for the signature of a manifest.
func signatureTag(digest v1.Hash) string {
	return digest.Algorithm + "-" + digest.Hex + ".sig"
}
