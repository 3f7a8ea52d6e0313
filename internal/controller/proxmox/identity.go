package proxmox

import (
	"regexp"
	"slices"
	"strings"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

const (
	// tagVM and tagInstallation are the prefixes of the tags by which VMs of Drover are found in the list of
	// all VMs. Tags of Proxmox VE have lower case letters.
	tagVM           = "drover-vm-"
	tagInstallation = "drover-in-"
	// maxNotes is the maximum length of notes.
	maxNotes = 8192
)

// notesOf returns the notes of a VM. The lines are in a code block, because Proxmox VE renders notes as
// Markdown.
func notesOf(uuid string, attributes map[string]string) string {
	return "A virtual machine of Drover, which finds it by these lines:\n\n```\n" + native.WriteNotes(uuid, attributes) + "\n```\n"
}

// readNotes returns the UUID and the attributes in notes. The UUID is "" if Drover did not write them.
func readNotes(notes string) (uuid string, attributes map[string]string) {
	_, block, ok := strings.Cut(strings.ReplaceAll(notes, "\r\n", "\n"), "```\n")
	if !ok {
		return "", nil
	}
	block, _, _ = strings.Cut(block, "```")
	uuid, attributes = native.ReadNotes(block)
	return strings.ToLower(uuid), attributes
}

var notInTag = regexp.MustCompile(`[^a-z0-9_.+-]`)

// tag returns the tag with a prefix and a value.
func tag(prefix, value string) string {
	return prefix + notInTag.ReplaceAllString(strings.ToLower(value), "_")
}

// tagsOf returns the tags of a VM in the format of its configuration.
func tagsOf(uuid string, own []string, attributes map[string]string) string {
	out := append(slices.Clone(own), tag(tagVM, uuid))
	if i := attributes[machinev1alpha1.TagInstallation]; i != "" {
		out = append(out, tag(tagInstallation, i))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ";")
}

// splitTags returns the single tags of an entry.
func splitTags(tags string) []string {
	return strings.FieldsFunc(tags, func(r rune) bool { return strings.ContainsRune(";, ", r) })
}

// uuidOfTags returns the UUID in the tags of a VM, or "" if the VM is not of Drover.
func uuidOfTags(tags string) string {
	for _, t := range splitTags(tags) {
		if uuid, ok := strings.CutPrefix(strings.ToLower(t), tagVM); ok {
			return uuid
		}
	}
	return ""
}

func providerID(uuid string) string { return "proxmox://" + strings.ToLower(uuid) }

const (
	imagePrefix = "drover-"
	imageSuffix = ".iso"
	uuidLength  = 36
)

// imageName returns the file name of the image of a VM. It contains the installation, so that an orphaned
// image is reported by its own installation only.
func imageName(uuid string, attributes map[string]string) string {
	name := imagePrefix
	if i := notInTag.ReplaceAllString(strings.ToLower(attributes[machinev1alpha1.TagInstallation]), "_"); i != "" {
		name += i + "-"
	}
	return name + strings.ToLower(uuid) + imageSuffix
}

// readImageName returns the installation and the UUID in the name of an image. The last value is false if the
// image is not of Drover.
func readImageName(name string) (installation, uuid string, ok bool) {
	rest, ok1 := strings.CutPrefix(name, imagePrefix)
	rest, ok2 := strings.CutSuffix(rest, imageSuffix)
	if !ok1 || !ok2 || len(rest) < uuidLength {
		return "", "", false
	}
	at := len(rest) - uuidLength
	return strings.TrimSuffix(rest[:at], "-"), rest[at:], true
}
