package plan

import "testing"

func TestUserDataIsFilledAnewForAnotherTemplate(t *testing.T) {
	own := func(secret, key string) JoinRequest {
		return JoinRequest{UserData: "rendered", OwnUserData: &OwnUserData{SecretName: secret, Key: key, Format: "CloudInit"}}
	}
	for name, tc := range map[string]struct {
		of   JoinRequest
		want string
	}{
		"WhichIsWhatDroverRenders": {JoinRequest{UserData: "rendered"}, "rendered"},
		"OrTheSecretOfTheUser":     {own("mine", "value"), `Secret mine, key "value", format CloudInit`},
		"WithItsDefaultKey":        {own("mine", ""), `Secret mine, key "", format CloudInit`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.of.Template(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
