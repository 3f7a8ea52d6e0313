// Package names derives the names of the objects that Drover composes.
//
// A function may be called twice with the same view. Names are therefore derived from the view and never
// random: the same view gives the same names. Each name contains a part of its owner's UID, because Crossplane
// adopts an existing object of the name that it is about to create, even that of a deleted owner.
package names

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
)

// maxLength of a name: a label value, and a host name, have at most 63 characters.
const maxLength = 63

// suffixLength is long enough to distinguish the objects that one owner composes, and short enough to read.
const suffixLength = 5

// MachineDeployment returns the name of the MachineDeployment of a NodePool in a failure domain.
// It names the failure domain too if that is a DNS label.
func MachineDeployment(pool string, uid types.UID, failureDomain string) string {
	base := pool
	if len(validation.IsDNS1123Label(failureDomain)) == 0 {
		base += "-" + failureDomain
	}
	return join(base, suffix(string(uid), failureDomain))
}

// MachineSet returns the name of the MachineSet of a MachineDeployment's template.
func MachineSet(deployment string, uid types.UID, templateHash string) string {
	return join(deployment, suffix(string(uid), templateHash))
}

// Machine returns the name of the n-th Machine that a MachineSet creates.
func Machine(set string, uid types.UID, n int64) string {
	return join(set, suffix(string(uid), strconv.FormatInt(n, 10)))
}

// OfMachine returns the name of a Machine's VM. The VM's host name, and so the Node's
// name, is the same.
func OfMachine(machine string, uid types.UID) string {
	return join(machine, suffix(string(uid)))
}

// OfCompanion returns the name of a companion of a Machine's VM.
func OfCompanion(machine string, uid types.UID, companion string) string {
	return OfMachine(machine, uid) + "-" + companion
}

// AnalysisRun returns the name of the RolloutAnalysisRun of a MachineDeployment.
func AnalysisRun(deployment string, uid types.UID) string {
	return join(deployment, suffix(string(uid), "analysis"))
}

// Turn returns the name of the RolloutTurn of a MachineDeployment.
func Turn(deployment string, uid types.UID) string {
	return join(deployment, suffix(string(uid), "turn"))
}

// Inventory returns the name of the inventory of an OrphanCollector.
func Inventory(collector string, uid types.UID) string {
	return join(collector, suffix(string(uid)))
}

// Orphan returns the name of the VM resource by which an OrphanCollector adopts a VM.
func Orphan(collector string, uid types.UID, externalName string) string {
	return join(collector, suffix(string(uid), externalName))
}

// UserData returns the name of the Secret with a Machine's user data.
func UserData(machine string, uid types.UID) string {
	return OfMachine(machine, uid) + "-user-data"
}

// TokenID returns the public half of the bootstrap token of a Machine.
func TokenID(uid types.UID) string {
	const (
		alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
		length   = 6
	)
	h := sha256.Sum256([]byte(uid))
	id := make([]byte, length)
	for i := range id {
		id[i] = alphabet[int(h[i])%len(alphabet)]
	}
	return string(id)
}

// Hash returns a short hash of its parts, of letters and digits that make no words.
func Hash(parts ...string) string {
	return suffixOf(sum(parts), 10)
}

func suffix(parts ...string) string { return suffixOf(sum(parts), suffixLength) }

func suffixOf(h uint64, n int) string {
	s := rand.SafeEncodeString(strconv.FormatUint(h, 36))
	for len(s) < n {
		s += s
	}
	return s[len(s)-n:]
}

func sum(parts []string) uint64 {
	h := sha256.New()
	for _, p := range parts {
		// Lengths keep ("a", "bc") and ("ab", "c") apart.
		_ = binary.Write(h, binary.BigEndian, uint64(len(p)))
		h.Write([]byte(p))
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// join shortens the base and never the suffix, which makes a name unique.
func join(base, suffix string) string {
	if most := maxLength - 1 - len(suffix); len(base) > most {
		base = base[:most]
		for base[len(base)-1] == '-' || base[len(base)-1] == '.' {
			base = base[:len(base)-1]
		}
	}
	return base + "-" + suffix
}
