package text

import "testing"

func TestAValueThatWasEncodedOnceMoreIsDecoded(t *testing.T) {
	for name, tc := range map[string]struct{ value, want string }{
		"InOneLine":     {"I2Nsb3VkLWNvbmZpZw==", "#cloud-config"},
		"InLines":       {"I2Nsb3Vk\nLWNvbmZpZw==\n", "#cloud-config"},
		"ATextIsNot":    {"#cloud-config", ""},
		"NothingIsNot":  {"", ""},
		"AWordMayBe":    {"test", "\xb5\xeb-"},
		"ACutOffIsNot":  {"I2Nsb3VkLWNvbmZpZw=", ""},
		"AnIndentedOne": {"  I2Nsb3VkLWNvbmZpZw==", "#cloud-config"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(Decoded([]byte(tc.value))); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
