package gcp

import "strings"

// machineTypes of each zone: https://cloud.google.com/compute/docs/machine-resource.
var machineTypes = map[string]map[string]any{
	"n2-standard-4":  {"name": "n2-standard-4", "guestCpus": 4, "memoryMb": 16384, "architecture": "X86_64"},
	"n2-standard-2":  {"name": "n2-standard-2", "guestCpus": 2, "memoryMb": 8192, "architecture": "X86_64"},
	"t2a-standard-4": {"name": "t2a-standard-4", "guestCpus": 4, "memoryMb": 16384, "architecture": "ARM64"},
}

// images, by the project that shares them.
var images = map[string][]map[string]any{
	"ubuntu-os-cloud": {
		{"name": "ubuntu-2404-noble-amd64-v20251021", "family": "ubuntu-2404-lts-amd64", "architecture": "X86_64", "diskSizeGb": "10", "status": "READY"},
		{"name": "ubuntu-2404-noble-arm64-v20251021", "family": "ubuntu-2404-lts-arm64", "architecture": "ARM64", "diskSizeGb": "10", "status": "READY"},
	},
	"my-project": {
		{"name": "golden", "architecture": "X86_64", "diskSizeGb": "10", "status": "READY"},
		{"name": "unfinished", "architecture": "X86_64", "diskSizeGb": "10", "status": "PENDING"},
		{"name": "old", "architecture": "X86_64", "diskSizeGb": "10", "status": "READY", "deprecated": map[string]any{"state": "OBSOLETE"}},
	},
}

func (k *call) machineType() (any, *failure) {
	if f := k.checkZone(); f != nil {
		return nil, k.notFound("projects/" + k.opts.Project + "/zones/" + k.Parameters["zone"])
	}
	name := k.Parameters["machineType"]
	if t := machineTypes[name]; t != nil {
		return t, nil
	}
	return nil, k.notFound(k.inZone("machineTypes", name))
}

// imageNamed returns the image with a name, or of a family.
func (k *call) imageNamed(project, name string, isFamily bool) map[string]any {
	key := "name"
	if isFamily {
		key = "family"
	}
	for _, i := range images[project] {
		if i[key] == name {
			return i
		}
	}
	return nil
}

func (k *call) image() (any, *failure) {
	return k.anImage(k.Parameters["image"], false)
}

func (k *call) imageOfFamily() (any, *failure) {
	return k.anImage(k.Parameters["family"], true)
}

func (k *call) anImage(name string, isFamily bool) (any, *failure) {
	if i := k.imageNamed(k.Parameters["project"], name, isFamily); i != nil {
		return i, nil
	}
	path := "projects/" + k.Parameters["project"] + "/global/images/" + name
	if isFamily {
		path = strings.Replace(path, "images/", "images/family/", 1)
	}
	return nil, k.notFound(path)
}
