package nocloud_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"github.com/drover-dev/drover/internal/nocloud"
)

// read reads an image with an independent library.
func read(t *testing.T, image []byte) (label string, files map[string]string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.iso")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := file.OpenFromPath(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	fs, err := iso9660.Read(b, int64(len(image)), 0, 2048)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, e := range entries {
		f, err := fs.OpenFile("/"+e.Name(), os.O_RDONLY)
		if err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		content, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(e.Name(), ";1")] = string(content)
	}
	return strings.TrimSpace(fs.Label()), files
}

func TestAnImageIsReadableByAnotherLibrary(t *testing.T) {
	cases := map[string]struct {
		d    nocloud.Data
		want map[string]string
	}{
		"UserDataAndMetaData": {
			nocloud.Data{UserData: "#cloud-config\n", MetaData: "instance-id: x\n"},
			map[string]string{"user-data": "#cloud-config\n", "meta-data": "instance-id: x\n"},
		},
		"ANetworkConfig": {
			nocloud.Data{UserData: "#!/bin/sh", MetaData: "{}", NetworkConfig: "version: 2"},
			map[string]string{"user-data": "#!/bin/sh", "meta-data": "{}", "network-config": "version: 2"},
		},
		"NoUserData":        {nocloud.Data{MetaData: "{}"}, map[string]string{"user-data": "", "meta-data": "{}"}},
		"UserDataOfSectors": {nocloud.Data{UserData: strings.Repeat("x", 2048*3), MetaData: "{}"}, map[string]string{"user-data": strings.Repeat("x", 2048*3), "meta-data": "{}"}},
		"UserDataOfHundredsOfKilobytes": {
			nocloud.Data{UserData: strings.Repeat("0123456789", 40_000), MetaData: "{}"},
			map[string]string{"user-data": strings.Repeat("0123456789", 40_000), "meta-data": "{}"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			image, err := nocloud.Image(tc.d)
			if err != nil {
				t.Fatal(err)
			}
			label, files := read(t, image)
			if label != nocloud.Label {
				t.Errorf("label %q", label)
			}
			if len(files) != len(tc.want) {
				t.Errorf("files %v", files)
			}
			for name, want := range tc.want {
				if files[name] != want {
					t.Errorf("%s has %d bytes, want %d", name, len(files[name]), len(want))
				}
			}
			again, err := nocloud.Image(tc.d)
			if err != nil || !bytes.Equal(image, again) {
				t.Errorf("the image of the same data differs: %v", err)
			}
		})
	}
}

func TestUserDataHasALimit(t *testing.T) {
	if _, err := nocloud.Image(nocloud.Data{UserData: strings.Repeat("x", nocloud.MaxUserData+1)}); err == nil {
		t.Error("no error for more than 8 MiB of user data")
	}
}
