package inventory

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"

	"github.com/drover-dev/drover/apis/inventory/v1alpha1"
)

// hashSize is the length of a hash in bytes. With it, two of some thousand names have the same hash
// by chance in one of ten million inventories. Such a VM can be missed without having been listed
// before, but all other conditions of a loss still hold for it.
const hashSize = 6

type hash [hashSize]byte

func hashOf(externalName string) hash {
	sum := sha256.Sum256([]byte(externalName))
	return hash(sum[:hashSize])
}

// A memory is the set of claimed VMs that an inventory has listed.
type memory map[hash]bool

// recall returns the memory that String wrote. If the text cannot be read, the memory is empty:
// then no VM is missing.
func recall(s string) memory {
	m := memory{}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(b)%hashSize != 0 {
		return m
	}
	for h := range slices.Chunk(b, hashSize) {
		m[hash(h)] = true
	}
	return m
}

func (m memory) has(externalName string) bool { return m[hashOf(externalName)] }

// add adds a VM, if there is room.
func (m memory) add(externalName string) {
	if len(m) < v1alpha1.MaxRemembered {
		m[hashOf(externalName)] = true
	}
}

// String returns the same text for the same set.
func (m memory) String() string {
	hashes := slices.SortedFunc(maps.Keys(m), func(a, b hash) int { return bytes.Compare(a[:], b[:]) })
	b := make([]byte, 0, len(hashes)*hashSize)
	for _, h := range hashes {
		b = append(b, h[:]...)
	}
	return base64.StdEncoding.EncodeToString(b)
}
