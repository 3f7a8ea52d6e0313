package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// run runs a command to its end. It returns the cost of the command and all its descendants, and its exit code.
//
// The descendants of a test are counted even if they outlive the process that started them, as the daemons of a local
// control plane do: run makes the calling process the subreaper of all, so that such a daemon becomes its child. What
// is still alive when the command ends is counted until then, and left alone.
func run(argv []string) (Spent, int, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return Spent{}, 0, fmt.Errorf("cannot become the subreaper of %s: %w", argv[0], err)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return Spent{}, 0, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)

	began := time.Now()
	process, err := os.StartProcess(path, argv, &os.ProcAttr{Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return Spent{}, 0, err
	}
	// "go test" and a terminal signal only this process. The stack traces of a test that hangs come from the test.
	go func() {
		for s := range signals {
			_ = process.Signal(s)
		}
	}()

	spent := Spent{}
	code := 0
	for {
		var status unix.WaitStatus
		var usage unix.Rusage
		pid, err := unix.Wait4(-1, &status, 0, &usage)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return spent, 0, fmt.Errorf("cannot wait for %s: %w", argv[0], err)
		}
		spent.add(&usage)
		if pid == process.Pid {
			code = exitCode(status)
			break
		}
	}
	spent.reap()
	spent.Wall = time.Since(began).Seconds()
	return spent, code, nil
}

// reap counts the orphans: those that have ended, and those that are still alive.
func (s *Spent) reap() {
	for {
		var usage unix.Rusage
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, &usage)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			break
		}
		s.add(&usage)
	}
	s.CPU += alive()
}

func (s *Spent) add(u *unix.Rusage) {
	s.CPU += seconds(u.Utime) + seconds(u.Stime)
	s.MemoryMB = max(s.MemoryMB, u.Maxrss/1024)
}

func seconds(t unix.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// exitCode is that of a shell: 128 and the number of the signal that ended the process.
func exitCode(s unix.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// ticks are the units of /proc/PID/stat. The kernel reports 100 per second to processes on all architectures that Go
// runs on.
const ticks = 100

// alive returns the CPU seconds of the processes that have this one as their parent, with those of their own ended children.
func alive() float64 {
	self := strconv.Itoa(os.Getpid())
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	sum := 0.0
	for _, file := range stats {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // It has ended meanwhile.
		}
		// The name of the program is in parentheses, and may have spaces. After it: state, parent, ..., and as the 12th
		// to the 15th utime, stime, cutime, cstime.
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 15 || fields[1] != self {
			continue
		}
		for _, f := range fields[11:15] {
			n, _ := strconv.ParseFloat(f, 64)
			sum += n / ticks
		}
	}
	return sum
}
