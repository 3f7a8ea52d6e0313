package drain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

func TestVolumesLeaveANode(t *testing.T) {
	const detach, reattach = time.Minute, 30 * time.Second
	is := func(state machinev1alpha1.VolumeState, ago time.Duration) []machinev1alpha1.MovingVolume {
		return []machinev1alpha1.MovingVolume{{Name: "pv", State: state, Since: metav1.NewTime(now.Add(-ago))}}
	}
	here, elsewhere := attachment{"pv", "n", true}, attachment{"pv", "other", true}
	cases := map[string]struct {
		view volumeView
		was  []machinev1alpha1.MovingVolume
		want []machinev1alpha1.MovingVolume
	}{
		"OneThatAPodUsesStays":                   {view: volumeView{attachments: []attachment{here}, used: map[string]bool{"pv": true}}},
		"OneThatNoPodUsesIsDetaching":            {view: volumeView{attachments: []attachment{here}}, want: is("Detaching", 0)},
		"SinceThen":                              {view: volumeView{attachments: []attachment{here}}, was: is("Detaching", detach-1), want: is("Detaching", detach-1)},
		"AnAttachmentThatIsOnlyWantedCountsToo":  {view: volumeView{attachments: []attachment{{"pv", "n", false}}}, want: is("Detaching", 0)},
		"AfterTheTimeoutItIsStuck":               {view: volumeView{attachments: []attachment{here}}, was: is("Detaching", detach), want: is("Stuck", 0)},
		"AndStaysSo":                             {view: volumeView{attachments: []attachment{here}}, was: is("Stuck", time.Hour), want: is("Stuck", time.Hour)},
		"UntilItIsDetachedAfterAll":              {was: is("Stuck", time.Hour)},
		"OnASilentNodeNothingIsDetached":         {view: volumeView{attachments: []attachment{here}, silent: true}, was: is("Detaching", time.Second)},
		"OneThatIsDetachedIsReattaching":         {was: is("Detaching", time.Second), want: is("Reattaching", 0)},
		"UntilItIsAttachedElsewhere":             {view: volumeView{attachments: []attachment{elsewhere}}, was: is("Reattaching", time.Second)},
		"WhichMustBeDone":                        {view: volumeView{attachments: []attachment{{"pv", "other", false}}}, was: is("Reattaching", time.Second), want: is("Reattaching", time.Second)},
		"OrTheTimeoutIsOver":                     {was: is("Reattaching", reattach)},
		"OneThatIsAttachedElsewhereAtOnceIsDone": {view: volumeView{attachments: []attachment{elsewhere}}, was: is("Detaching", time.Second)},
		"OneThatAPodUsesAgainDoesNotMove":        {view: volumeView{attachments: []attachment{here}, used: map[string]bool{"pv": true}}, was: is("Detaching", time.Second)},
		"VolumesOfOtherNodesAreNotOurs":          {view: volumeView{attachments: []attachment{elsewhere}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.view.now, tc.view.node, tc.view.detach, tc.view.reattach = now, "n", detach, reattach
			if d := cmp.Diff(tc.want, tc.view.move(tc.was)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func attached(volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	}
}

func TestAttachmentsAreSharedButNotFromBeforeADrain(t *testing.T) {
	kube := fake.NewClientset(attached("pv", "n"))
	a := &Attachments{}
	for i, tc := range []struct {
		began, now time.Duration
		lists      int
	}{
		{0, 0, 1},
		{0, time.Second, 1},           // shared
		{time.Second, time.Second, 2}, // began after the list
		{0, 2 * time.Second, 2},
		{0, time.Second + attachmentsFor, 3}, // too old
	} {
		if got, err := a.in(t.Context(), target.ClusterRef("c"), kube, now.Add(tc.began), now.Add(tc.now)); err != nil || len(got) != 1 {
			t.Fatalf("%v, %v", got, err)
		}
		if n := len(kube.Actions()); n != tc.lists {
			t.Errorf("call %d: %d lists, want %d", i, n, tc.lists)
		}
	}
}
