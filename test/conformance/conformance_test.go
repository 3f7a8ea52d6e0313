package conformance

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/conformance/simulator"
	"github.com/drover-dev/drover/test/kit"
)

// tested are the clouds that the suite tests, in the order of the table: those that register themselves, and those that a
// file describes.
// TestMain collects them.
var tested []Cloud

// registered are the clouds of this package by name.
var registered = map[string]Cloud{}

// register adds a cloud to the suite. Each file of a cloud calls it.
func register(c Cloud) { registered[c.Provider()] = c }

// inOrder returns all clouds in the order of the table.
func inOrder() []Cloud {
	var out []Cloud
	for _, name := range slices.Sorted(maps.Keys(registered)) {
		out = append(out, registered[name])
	}
	return append(out, described()...)
}

// described returns the clouds that the files in the folder clouds describe.
func described() []Cloud {
	files, err := filepath.Glob(filepath.Join("clouds", "*.yaml"))
	if err != nil {
		panic(err)
	}
	slices.Sort(files)
	var out []Cloud
	for _, file := range files {
		d, err := simulator.Read(file)
		if err != nil {
			panic(err)
		}
		out = append(out, &simulated{Description: d})
	}
	return out
}

// plane starts the control plane when a test first needs it.
var plane = sync.OnceValues(func() (*kit.Plane, error) {
	started.Store(true)
	p, err := kit.Up(context.Background(), kit.Options{Args: kit.Limits, Witness: true})
	if err != nil {
		return p, err
	}
	s, err := p.Cloud.GetSettings(context.Background())
	if err != nil {
		return p, err
	}
	s.BootTime = localcloud.Duration(500 * time.Millisecond)
	_, err = p.Cloud.SetSettings(context.Background(), *s)
	return p, err
})

var started atomic.Bool

// installs has, by cloud, a function that installs it once.
var installs sync.Map

// installed installs a cloud on the control plane, unless that is done already.
func installed(c Cloud) (*kit.Plane, error) {
	once, _ := installs.LoadOrStore(c.Provider(), sync.OnceValues(func() (*kit.Plane, error) {
		p, err := plane()
		if err != nil {
			return nil, err
		}
		ctx := context.Background()
		before, err := p.CRDNames(ctx)
		if err != nil {
			return nil, err
		}
		if err := c.Install(ctx, p); err != nil {
			return nil, fmt.Errorf("cannot install %s: %w", c.Provider(), err)
		}
		return p, p.AwaitPublished(ctx, before)
	}))
	return once.(func() (*kit.Plane, error))()
}

// atOnce is how many cases run in parallel, regardless of the number of processors: most of the
// time they wait for a provider that is as slow as a real one.
const atOnce = "16"

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	tested = inOrder()
	code := m.Run()
	fmt.Print(results.String())
	if started.Load() {
		p, err := plane()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		for _, c := range tested {
			c.Close()
		}
		if err == nil {
			for _, leak := range p.Leaks() {
				fmt.Fprintln(os.Stderr, "leak:", leak)
				code = 1
			}
		}
		if code != 0 && p != nil {
			p.KeepLogs()
		}
		p.Down()
	}
	os.Exit(code)
}

// TestConformance runs every case with every provider. make conformance PROVIDER=aws runs those of
// one provider.
func TestConformance(t *testing.T) {
	for _, c := range tested {
		t.Run(c.Provider(), func(t *testing.T) {
			if a, ok := c.(interface{ Absent() string }); ok && a.Absent() != "" {
				t.Skip(a.Absent())
			}
			if kit.IsShort() && isCloudOnlyInLong(c) {
				t.Skip("make conformance runs it: another cloud of the same provider, or the unit test of its own provider, stands for it")
			}
			t.Parallel()
			began := time.Now()
			t.Cleanup(func() { results.took(c.Provider(), time.Since(began)) })
			for _, tc := range cases {
				if !tc.inLife {
					run(t, c, tc, nil)
				}
			}
			t.Run("Life", func(t *testing.T) {
				t.Parallel()
				l := newLife(t, c)
				for _, tc := range cases {
					if tc.inLife {
						run(t, c, tc, l)
					}
				}
				l.world.end(t, l.md)
			})
		})
	}
}

// run runs a case, or skips it with the reason. Cases of a life run one after the other.
func run(t *testing.T, c Cloud, tc Case, l *life) {
	t.Run(tc.Name, func(t *testing.T) {
		if reason, ok := cannot(c)[tc.Name]; ok {
			results.note(c.Provider(), tc.Name, "-")
			t.Skipf("%s cannot have it: %s", c.Provider(), reason)
		}
		if kit.IsShort() && isOnlyInLong(c, tc) {
			results.note(c.Provider(), tc.Name, "long")
			t.Skip("make conformance runs it")
		}
		t.Cleanup(func() { results.note(c.Provider(), tc.Name, outcome(t)) })
		if l == nil && !alone(c, tc) {
			t.Parallel()
		}
		tc.run(t, c, l)
	})
}

// alone reports whether a case cannot run in parallel with the other cases of its provider, because
// it kills the process that they share.
func alone(c Cloud, tc Case) bool { return tc.Name == CaseRestart && c.Backing() != played }

func outcome(t *testing.T) string {
	if t.Failed() {
		return "FAIL"
	}
	return "pass"
}

func key(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }

var listAll = localcloud.ListVMsOptions{}

// results of the run.
var results = &table{of: map[string]map[string]string{}, times: map[string]time.Duration{}}

// A table of providers and cases.
type table struct {
	mu sync.Mutex
	of map[string]map[string]string
	// times is how long each provider took.
	times map[string]time.Duration
}

func (r *table) took(provider string, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times[provider] = d
}

func (r *table) note(provider, name, outcome string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[provider] == nil {
		r.of[provider] = map[string]string{}
	}
	r.of[provider][name] = outcome
}

// String returns a line per case and a column per provider: there are more cases than providers.
func (r *table) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var providers []string
	for _, c := range tested {
		if r.of[c.Provider()] != nil {
			providers = append(providers, c.Provider())
		}
	}
	if len(providers) == 0 {
		return ""
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, "\n%-18s", "")
	for _, p := range providers {
		fmt.Fprintf(b, " %-12s", p)
	}
	for _, tc := range cases {
		fmt.Fprintf(b, "\n%-18s", tc.Name)
		for _, p := range providers {
			fmt.Fprintf(b, " %-12s", r.of[p][tc.Name])
		}
	}
	fmt.Fprintf(b, "\n%-18s", "time")
	for _, p := range providers {
		fmt.Fprintf(b, " %-12s", r.times[p].Round(time.Second))
	}
	b.WriteString("\n\n")
	return b.String()
}
