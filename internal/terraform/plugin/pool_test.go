package plugin

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A poolWorld has a pool whose processes are none.
type poolWorld struct {
	*Pool
	clock  time.Time
	starts int
	err    error
}

func newPoolWorld() *poolWorld {
	w := &poolWorld{clock: time.Unix(0, 0)}
	w.Pool = NewPool("", func() time.Time { return w.clock })
	w.launch = func(context.Context, Settings) (*process, error) {
		w.starts++
		if w.err != nil {
			return nil, w.err
		}
		return &process{provider: &Provider{}}, nil
	}
	return w
}

func (w *poolWorld) get(t *testing.T, token string) (func(), error) {
	t.Helper()
	_, release, err := w.Get(t.Context(), Settings{Configuration: map[string]any{"token": token}})
	return release, err
}

func TestAProcessStaysWhileItIsUsed(t *testing.T) {
	w := newPoolWorld()
	release, err := w.get(t, "a")
	if err != nil {
		t.Fatal(err)
	}
	w.clock = w.clock.Add(time.Hour)
	w.reap(idleTimeout)
	if w.Processes() != 1 {
		t.Error("a process that is used was ended")
	}
	release()
	release() // A second time counts not.
	w.reap(idleTimeout)
	if w.Processes() != 1 {
		t.Error("a process was ended right after its use")
	}
	w.clock = w.clock.Add(idleTimeout)
	w.reap(idleTimeout)
	if w.Processes() != 0 {
		t.Error("a process that nobody used for so long stays")
	}
}

func TestOtherCredentialsHaveAnotherProcess(t *testing.T) {
	w := newPoolWorld()
	for _, token := range []string{"a", "b", "a"} {
		release, err := w.get(t, token)
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	if w.starts != 2 || w.Processes() != 2 {
		t.Errorf("%d starts, %d processes", w.starts, w.Processes())
	}
}

func TestAFailedStartIsNotRepeatedByEachVM(t *testing.T) {
	w := newPoolWorld()
	w.err = errors.New("401 Unauthorized")
	for range 50 {
		if _, err := w.get(t, "a"); !errors.Is(err, w.err) {
			t.Fatalf("error %v", err)
		}
	}
	if w.starts != 1 {
		t.Errorf("%d starts for 50 VMs", w.starts)
	}
	w.clock = w.clock.Add(retryAfter)
	w.err = nil
	release, err := w.get(t, "a")
	if err != nil || w.starts != 2 {
		t.Fatalf("error %v after %d starts", err, w.starts)
	}
	release()
}

func TestAClosedPoolStartsNothing(t *testing.T) {
	w := newPoolWorld()
	release, err := w.get(t, "a")
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if w.Processes() != 1 {
		t.Error("a process that is used was ended")
	}
	if _, err := w.get(t, "a"); err == nil {
		t.Error("a closed pool gives a provider")
	}
	release()
	w.Close()
	if w.Processes() != 0 {
		t.Error("a process is left")
	}
}

func TestTheEnvironmentOfAProviderHasNoSecrets(t *testing.T) {
	got := environment([]string{"HTTPS_PROXY=http://proxy", "PATH=/bin", "AWS_SECRET_ACCESS_KEY=s", "KUBERNETES_SERVICE_HOST=10.96.0.1", "TF_LOG=trace"})
	if len(got) != 2 || got[0] != "HTTPS_PROXY=http://proxy" || got[1] != "PATH=/bin" {
		t.Errorf("%v", got)
	}
}

// FuzzProviderSchema gives garbage to what decodes the answers of a provider.
func FuzzProviderSchema(f *testing.F) {
	f.Add([]byte{0x0a, 0x02, 0x08, 0x01})
	f.Add([]byte{0x12, 0x08, 0x0a, 0x01, 'a', 0x12, 0x03, 0x12, 0x01, 0x12})
	f.Add([]byte{0x22, 0x04, 0x08, 0x01, 0x12, 0x00})
	f.Fuzz(func(_ *testing.T, b []byte) {
		s, err := readProviderSchema(b)
		if err != nil {
			return
		}
		for _, r := range s.Resources {
			_, _ = r.decode(dynamicValue{msgpack: b})
		}
	})
}
