package real

import (
	"bytes"
	"regexp"
	"strings"
)

// maxLine is the number of bytes of a line that are kept: a guest can write lines of any length.
const maxLine = 4 << 10

var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[a-zA-Z]`)

// lines writes text line by line, without escape sequences for a terminal.
type lines struct {
	write func(string)
	rest  []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 && len(l.rest) > maxLine {
			i = maxLine
		}
		if i < 0 {
			return len(p), nil
		}
		line := strings.TrimRight(escapes.ReplaceAllString(string(l.rest[:i]), ""), "\r")
		l.rest = bytes.TrimPrefix(l.rest[i:], []byte("\n"))
		if strings.TrimSpace(line) != "" {
			l.write(strings.ToValidUTF8(line, "?"))
		}
	}
}
