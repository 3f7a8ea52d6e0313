package proxmox

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/diskfs/go-diskfs/filesystem/iso9660"
)

func (s *storage) on(node string) bool { return len(s.nodes) == 0 || slices.Contains(s.nodes, node) }

// at returns the images that are available on a node.
func (s *storage) at(node string) map[string]image {
	if s == nil {
		return nil
	}
	if s.shared {
		node = ""
	}
	if s.images[node] == nil {
		s.images[node] = map[string]image{}
	}
	return s.images[node]
}

// storageOn checks that a storage exists on a node and allows a type of content, if that is not "".
func (c *Cluster) storageOn(name, node, content string) *failure {
	s := c.storages[name]
	switch {
	case s == nil:
		return dies("storage '%s' does not exist", name)
	case !s.on(node):
		return dies("storage '%s' is not available on node '%s'", name, node)
	case content != "" && !slices.Contains(s.content, content):
		return dies("storage '%s' does not support content-type '%s'", name, content)
	}
	return nil
}

var imageName = regexp.MustCompile(`^[A-Za-z0-9._-]+\.(iso|img)$`)

// storage carries out calls for volumes.
func (c *call) storage(n *node, parts []string, name string) (any, *failure) {
	if len(parts) < 2 {
		return nil, fail(http.StatusNotImplemented, "Method '%s' not implemented", name)
	}
	privilege := map[string]string{http.MethodPost: "Datastore.AllocateTemplate", http.MethodDelete: "Datastore.Allocate"}[c.method]
	if privilege != "" && c.token.ReadOnly {
		return nil, fail(http.StatusForbidden, "Permission check failed (/storage/%s, %s)", parts[0], privilege)
	}
	if problem := c.storageOn(parts[0], n.name, ""); problem != nil {
		return nil, problem
	}
	s := c.storages[parts[0]]
	switch c.method + " " + parts[1] {
	case "POST upload":
		return c.put(n, s)
	case "GET content":
		out := []map[string]any{}
		for file, i := range s.at(n.name) {
			out = append(out, map[string]any{"volid": s.name + ":iso/" + file, "format": "iso", "content": "iso", "size": len(i.data), "ctime": i.created.Unix()})
		}
		return out, nil
	case "DELETE content":
		volume := strings.Join(parts[2:], "/")
		file, ok := strings.CutPrefix(strings.TrimPrefix(volume, s.name+":"), "iso/")
		if !ok {
			return nil, dies("unable to parse volume ID '%s'", volume)
		}
		if _, there := s.at(n.name)[file]; !there {
			return nil, dies("volume '%s:iso/%s' does not exist", s.name, file)
		}
		return c.begin(c.now, n.name, "imgdel", 0, c.user, c.opts.Step, func(time.Time) string {
			delete(s.at(n.name), file)
			return ""
		}), nil
	}
	return nil, fail(http.StatusNotImplemented, "Method '%s' not implemented", name)
}

// put uploads an image. It replaces one with the same name.
func (c *call) put(n *node, s *storage) (any, *failure) {
	switch {
	case c.params["content"] != "iso":
		return nil, badParameter("content", "value '%s' does not have a value in the enumeration 'iso, vztmpl, import'", c.params["content"])
	case !slices.Contains(s.content, "iso"):
		return nil, dies("storage '%s' does not support content-type 'iso'", s.name)
	case c.upload == nil:
		return nil, badParameter("filename", "property is missing and it is not optional")
	case !imageName.MatchString(c.upload.name):
		return nil, badParameter("filename", "wrong file extension")
	}
	up := *c.upload
	return c.begin(c.now, n.name, "imgcopy", 0, c.user, c.opts.Step, func(now time.Time) string {
		s.at(n.name)[up.name] = image{data: up.data, created: now}
		return ""
	}), nil
}

// cloudInit returns the files that the guest of a VM reads from its image.
func (c *Cluster) cloudInit(m *machine) map[string]string {
	for _, drive := range m.config {
		volume, options, _ := strings.Cut(drive, ",")
		storage, file, ok := strings.Cut(volume, ":iso/")
		if !ok || !strings.Contains(options, "media=cdrom") {
			continue
		}
		if files := readImage(c.storages[storage].at(m.node)[file].data); files != nil {
			return files
		}
	}
	return nil
}

// readImage returns the files of an image with the label cidata, or nil.
func readImage(data []byte) map[string]string {
	if len(data) == 0 {
		return nil
	}
	fsys, err := iso9660.Read(inMemory{Reader: bytes.NewReader(data)}, int64(len(data)), 0, 2048)
	if err != nil || strings.TrimSpace(fsys.Label()) != "cidata" {
		return nil
	}
	entries, err := fsys.ReadDir(".")
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, e := range entries {
		f, err := fsys.OpenFile("/"+e.Name(), os.O_RDONLY)
		if err != nil {
			return nil
		}
		content, err := io.ReadAll(f)
		if err != nil {
			return nil
		}
		out[strings.TrimSuffix(e.Name(), ";1")] = string(content)
	}
	return out
}
