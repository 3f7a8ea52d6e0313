package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

func readChild(t *testing.T, r io.Reader) int {
	t.Helper()
	for s := bufio.NewScanner(r); s.Scan(); {
		if n, ok := strings.CutPrefix(s.Text(), "child "); ok {
			pid, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("the parent ended without a child")
	return 0
}

// alive returns false for a zombie too, because its parent may never reap it.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(after, "Z")
}
