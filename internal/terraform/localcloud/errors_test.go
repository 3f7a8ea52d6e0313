package localcloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"testing"

	api "github.com/drover-dev/drover/internal/localcloud"
)

func TestCreateErrorText(t *testing.T) {
	wrapped := func(err error) error {
		return fmt.Errorf("call local cloud: %w", &url.Error{Op: "Post", URL: "http://cloud/v1/vms", Err: err})
	}
	cases := map[string]struct {
		err  error
		want string
	}{
		"TheCloudsCodeComesFirst": {
			api.NewError(api.CodeCapacityExhausted, "no %s left", "small"),
			"CapacityExhausted: no small left",
		},
		"AnInternalErrorOfTheCloudIsAnAnswer": {
			api.NewError(api.CodeInternal, "disk full"),
			"Internal: disk full",
		},
		"ALostAnswerLeavesItOpen": {
			wrapped(io.EOF),
			`CreationResultUnknown: call local cloud: Post "http://cloud/v1/vms": EOF`,
		},
		"ATimeoutLeavesItOpen": {
			wrapped(context.DeadlineExceeded),
			`CreationResultUnknown: call local cloud: Post "http://cloud/v1/vms": context deadline exceeded`,
		},
		"AProxysErrorLeavesItOpen": {
			&api.Error{StatusCode: 502, Message: "bad gateway"},
			"CreationResultUnknown: local cloud: HTTP status 502: bad gateway",
		},
		"AProxysRefusalDoesNot": {
			&api.Error{StatusCode: 407, Message: "who are you"},
			"local cloud: HTTP status 407: who are you",
		},
		"WithoutAConnectionNothingWasAsked": {
			wrapped(&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}),
			`call local cloud: Post "http://cloud/v1/vms": dial tcp: connection refused`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := createErrorText(tc.err); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
