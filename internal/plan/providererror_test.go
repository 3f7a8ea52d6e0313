package plan

import "testing"

func TestTheErrorOfACloudIsTheSameForEachRequest(t *testing.T) {
	for text, want := range map[string]string{
		"api error UnauthorizedOperation: no, RequestID: 8f1c6b4e-0000-4000-8000-0123456789ab": "api error UnauthorizedOperation: no, ...",
		"at 2030-01-01T12:00:00.123Z\nit failed":                                               "at ... it failed",
		`"request_id":"0123456789abcdef" denied`:                                               `"request_id":"0123456789abcdef" denied`,
		"VM 8f1c6b4e-0000-4000-8000-0123456789ab is locked":                                    "VM ... is locked",
		"the quota of 20 cores is used up":                                                     "the quota of 20 cores is used up",
	} {
		if got := Steady(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got := Steady(Steady(text)); got != want {
			t.Errorf("%q changes again: %q", text, got)
		}
	}
}
