package inventory

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"

	"github.com/drover-dev/drover/apis/inventory/v1alpha1"
)

// hashSize is so much of a hash that two of some thousand names have the same by chance in one of
// ten million inventories. Such a VM is missed without having been listed before; all other
// conditions of a loss still hold for it.
const hashSize = 6

type hash [hashSize]byte

func hashOf(externalName string) hash {
	sum := sha256.Sum256([]byte(externalName))
	return hash(sum[:hashSize])
}

// A memory is the set of claimed VMs that an inventory has listed.
type memory map[hash]bool

// recall a memory that String wrote. What cannot be read is forgotten: nothing is missing then.
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

// add a VM, if there is room.
func (m memory) add(externalName string) {
	if len(m) < v1alpha1.MaxRemembered {
		m[hashOf(externalName)] = true
	}
}

// String is the same for the same set.
func (m memory) String() string {
	hashes := slices.SortedFunc(maps.Keys(m), func(a, b hash) int { return bytes.Compare(a[:], b[:]) })
	b := make([]byte, 0, len(hashes)*hashSize)
	for _, h := range hashes {
		b = append(b, h[:]...)
	}
	return base64.StdEncoding.EncodeToString(b)
}
