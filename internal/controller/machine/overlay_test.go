package machine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
)

func version(v string, uid types.UID) *unstructured.Unstructured {
	u := aVM()
	u.SetResourceVersion(v)
	u.SetUID(uid)
	return u
}

func TestOverlay(t *testing.T) {
	written := version("10", "a")
	key := overlayKeyOf(written)
	cases := map[string]struct {
		reason string
		cached client.Object
		after  time.Duration
		want   bool
		stays  bool // the write is still remembered
	}{
		"TheCacheLacksIt":     {"It was created just now.", nil, 0, true, true},
		"TheCacheIsOlder":     {"It lags.", version("9", "a"), 0, true, true},
		"NumbersAreCompared":  {"9 is older than 10, although its text is greater.", version("9", "a"), time.Second, true, true},
		"TheCacheHasIt":       {"Nothing is to be remembered any more.", version("10", "a"), 0, false, false},
		"TheCacheIsNewer":     {"Another client wrote it.", version("11", "a"), 0, false, false},
		"ItWasCreatedAgain":   {"Versions of another object cannot be compared.", version("9", "b"), 0, false, false},
		"TheLastMoment":       {"The cache may lag that long.", nil, overlayFor, true, true},
		"ItIsOver":            {"The object is gone, and the cache missed both.", nil, overlayFor + 1, false, false},
		"ItIsOverThoughOlder": {"A cache that lags longer than that is taken as it is.", version("9", "a"), overlayFor + 1, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := nodetest.Start
			o := newOverlay(func() time.Time { return now })
			o.put(written)
			now = now.Add(tc.after)
			got, ok := o.get(key, tc.cached)
			if ok != tc.want || ok && got != client.Object(written) {
				t.Errorf("%s\ngot %v, %v", tc.reason, got, ok)
			}
			if len(o.objects) == 1 != tc.stays {
				t.Errorf("%s\nremembered %d objects", tc.reason, len(o.objects))
			}
		})
	}
	t.Run("AnObjectThatWasDeletedIsDropped", func(t *testing.T) {
		o := newOverlay(time.Now)
		o.put(written)
		o.drop(version("12", "a"))
		if _, ok := o.get(key, nil); ok {
			t.Error("it is still there")
		}
	})
	t.Run("OwnIsWhatWasWrittenLast", func(t *testing.T) {
		o := newOverlay(time.Now)
		kind := vmKind.GroupKind()
		if o.isOwn(written, kind) {
			t.Error("nothing was written")
		}
		o.put(version("8", "a"))
		o.put(written)
		if !o.isOwn(version("10", "a"), kind) || o.isOwn(version("8", "a"), kind) || o.isOwn(version("11", "a"), kind) || o.isOwn(version("10", "a"), cardKind.GroupKind()) {
			t.Error("another version, or kind, is taken for it")
		}
	})
}
