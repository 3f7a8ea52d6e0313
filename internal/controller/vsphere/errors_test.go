package vsphere

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/task"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

func TestClassesOfErrors(t *testing.T) {
	cases := map[fn.ErrorCode][]types.BaseMethodFault{
		fn.ErrorPermissionDenied: {&types.NoPermission{}, &types.NotAuthenticated{}, &types.InvalidLogin{}, &types.PasswordExpired{}},
		fn.ErrorQuotaExceeded:    {&types.NotEnoughLicenses{}, &types.LimitExceeded{}},
		fn.ErrorCapacityExhausted: {
			&types.NoDiskSpace{}, &types.InsufficientCpuResourcesFault{}, &types.InsufficientMemoryResourcesFault{},
			&types.InsufficientStorageSpace{}, &types.InsufficientFailoverResourcesFault{}, &types.NoCompatibleHost{},
		},
		fn.ErrorThrottled: {&types.TooManyConcurrentNativeClones{}},
		fn.ErrorInvalidRequest: {
			&types.InvalidArgument{}, &types.InvalidName{}, &types.InvalidVmConfig{}, &types.DuplicateName{}, &types.FileNotFound{},
			&types.NotSupported{}, &types.InvalidDatastorePath{}, &types.MissingController{}, &types.NotEnoughCpus{}, &types.ToolsUnavailable{},
		},
		fn.ErrorTransient: {&types.HostCommunication{}, &types.TaskInProgress{}, &types.InvalidPowerState{}, &types.ConcurrentAccess{}, &types.SystemError{}},
	}
	for want, faults := range cases {
		for _, f := range faults {
			for how, err := range map[string]error{
				"answered":        soap.WrapVimFault(f),
				"of a task":       task.Error{LocalizedMethodFault: &types.LocalizedMethodFault{Fault: f, LocalizedMessage: "x"}},
				"deep in another": fmt.Errorf("around: %w", soap.WrapVimFault(f)),
			} {
				if got := classOf(err); got != want {
					t.Errorf("%T %s: %s, want %s", f, how, got, want)
				}
			}
		}
	}
	for want, errs := range map[fn.ErrorCode][]error{
		fn.ErrorThrottled: {
			&url.Error{Op: "POST", URL: "/sdk", Err: errors.New("503 Service Unavailable")},
			&url.Error{Op: "POST", URL: "/sdk", Err: errors.New("429 Too Many Requests")},
		},
		fn.ErrorTransient:      {&url.Error{Op: "POST", URL: "/sdk", Err: errors.New("connection refused")}, errors.New("x")},
		fn.ErrorInvalidRequest: {&find.NotFoundError{}, &find.DefaultMultipleFoundError{}, native.Invalid("name", "x")},
	} {
		for _, err := range errs {
			if got := classOf(err); got != want {
				t.Errorf("%v: %s, want %s", err, got, want)
			}
		}
	}
}

func TestAnErrorSaysItsClassWhatWasTriedAndWhatIsMissing(t *testing.T) {
	err := classify("cannot clone", soap.WrapVimFault(&types.NoPermission{
		Object: &types.ManagedObjectReference{Type: "Folder", Value: "group-v3"}, PrivilegeId: "VirtualMachine.Inventory.CreateFromExisting",
	}))
	want := "PermissionDenied: cannot clone: NoPermission (needs the privilege VirtualMachine.Inventory.CreateFromExisting on Folder:group-v3)"
	if err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if again := classify("around", err); strings.Count(again.Error(), "PermissionDenied") != 1 || classOf(fmt.Errorf("x: %w", again)) != fn.ErrorPermissionDenied {
		t.Errorf("classified twice: %q", again)
	}
}
