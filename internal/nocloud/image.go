// Package nocloud builds the image that the datasource NoCloud of cloud-init reads: a CD with the
// label cidata and the files user-data and meta-data.
//
// The image is built in memory. Libraries for ISO 9660 write the files to a directory first, but user
// data contains a join token.
package nocloud

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// MaxUserData is the maximum size of the user data in bytes.
const MaxUserData = 8 << 20

// Label of the image, by which cloud-init finds it.
const Label = "cidata"

// Data is the content of an image.
type Data struct {
	UserData, MetaData string
	// NetworkConfig is optional.
	NetworkConfig string
}

// Image returns an image, which depends on the data only. It fails if the user data is larger than
// MaxUserData.
func Image(d Data) ([]byte, error) {
	if len(d.UserData) > MaxUserData {
		return nil, fmt.Errorf("the user data has %d bytes, at most %d are allowed", len(d.UserData), MaxUserData)
	}
	files := []file{{name: "meta-data", data: d.MetaData}, {name: "user-data", data: d.UserData}}
	if d.NetworkConfig != "" {
		files = append(files, file{name: "network-config", data: d.NetworkConfig})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return image(files), nil
}

// Sectors of the image, in the layout of ECMA-119 and the Joliet specification.
const (
	sector = 2048

	primaryAt = 15 + iota
	jolietAt
	endAt
	pathsAt       // primary, little endian
	pathsBigAt    // primary, big endian
	jolietPathsAt // Joliet, little endian
	jolietPathsBigAt
	rootAt
	jolietRootAt
	filesAt
)

// pathTableSize is the size of a path table that has only the root directory.
const pathTableSize = 10

type file struct {
	name, data string
	at         int
}

// A tree is one of the two directories of the same files: one has the short names of ECMA-119, the other
// one the long names of Joliet, which Linux prefers.
type tree struct {
	descriptor, paths, pathsBig, root int
	// escape is the escape sequence of the character set, "" for the primary directory.
	escape string
	text   func(s string, size int) []byte
	name   func(string) []byte
}

func image(files []file) []byte {
	next := filesAt
	for i := range files {
		files[i].at = next
		next += (len(files[i].data) + sector - 1) / sector
	}
	out := make([]byte, next*sector)
	for _, t := range []tree{
		{descriptor: primaryAt, paths: pathsAt, pathsBig: pathsBigAt, root: rootAt, text: padded, name: primaryName},
		{descriptor: jolietAt, paths: jolietPathsAt, pathsBig: jolietPathsBigAt, root: jolietRootAt, escape: "%/E", text: paddedUCS2, name: jolietName},
	} {
		t.write(out, files, next)
	}
	copy(out[endAt*sector:], "\xffCD001\x01")
	for _, f := range files {
		copy(out[f.at*sector:], f.data)
	}
	return out
}

func (t tree) write(out []byte, files []file, sectors int) {
	d := out[t.descriptor*sector : (t.descriptor+1)*sector]
	d[0] = 1
	if t.escape != "" {
		d[0] = 2
	}
	copy(d[1:], "CD001\x01")
	copy(d[8:], t.text("LINUX", 32))
	copy(d[40:], t.text(Label, 32))
	both32(d[80:], sectors)
	copy(d[88:], t.escape)
	both16(d[120:], 1)
	both16(d[124:], 1)
	both16(d[128:], sector)
	both32(d[132:], pathTableSize)
	binary.LittleEndian.PutUint32(d[140:], uint32(t.paths))
	binary.BigEndian.PutUint32(d[148:], uint32(t.pathsBig))
	root := record([]byte{0}, t.root, sector, true)
	copy(d[156:], root)
	for _, at := range []int{190, 318, 446, 574} {
		copy(d[at:], t.text("", 128))
	}
	copy(d[702:], t.text("", 111))
	for _, at := range []int{813, 830, 847, 864} {
		copy(d[at:], strings.Repeat("0", 16)) // No date.
	}
	d[881] = 1

	for i, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		p := out[[]int{t.paths, t.pathsBig}[i]*sector:]
		p[0] = 1
		order.PutUint32(p[2:], uint32(t.root))
		order.PutUint16(p[6:], 1)
	}

	dir := append(slices.Clone(root), record([]byte{1}, t.root, sector, true)...)
	for _, f := range t.sorted(files) {
		dir = append(dir, record(t.name(f.name), f.at, len(f.data), false)...)
	}
	copy(out[t.root*sector:(t.root+1)*sector], dir)
}

// sorted returns the files in the order of their names in the tree, which ECMA-119 requires.
func (t tree) sorted(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int {
		return strings.Compare(string(t.name(a.name)), string(t.name(b.name)))
	})
}

// record returns an entry of a directory.
func record(name []byte, at, size int, directory bool) []byte {
	length := 33 + len(name)
	length += length % 2
	r := make([]byte, length)
	r[0] = byte(length)
	both32(r[2:], at)
	both32(r[10:], size)
	copy(r[18:], []byte{70, 1, 1, 0, 0, 0, 0}) // A constant date: the image depends on the data only.
	if directory {
		r[25] = 2
	}
	both16(r[28:], 1)
	r[32] = byte(len(name))
	copy(r[33:], name)
	return r
}

// primaryName returns a name of at most eight letters and digits.
func primaryName(name string) []byte {
	letters := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, name)
	return []byte(strings.ToUpper(letters[:min(8, len(letters))]) + ".;1")
}

func jolietName(name string) []byte { return ucs2(name + ";1") }

func ucs2(s string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.BigEndian.AppendUint16(b, u)
	}
	return b
}

func padded(s string, size int) []byte { return []byte(s + strings.Repeat(" ", size-len(s))) }

func paddedUCS2(s string, size int) []byte {
	return append(ucs2(s+strings.Repeat(" ", size/2-len(s))), make([]byte, size%2)...)
}

// both32 and both16 write a number in both byte orders, as ECMA-119 requires.
func both32(b []byte, n int) {
	binary.LittleEndian.PutUint32(b, uint32(n))
	binary.BigEndian.PutUint32(b[4:], uint32(n))
}

func both16(b []byte, n uint16) {
	binary.LittleEndian.PutUint16(b, n)
	binary.BigEndian.PutUint16(b[2:], n)
}
