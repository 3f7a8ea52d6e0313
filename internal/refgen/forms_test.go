package main

import "testing"

func TestThePageHasMessagesInsteadOfPatterns(t *testing.T) {
	for _, tc := range []struct{ name, page, want string }{
		{
			"InACell", "| `provider` string | Provider. | required | MaxLength: 63<br>Pattern: `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`<br>last |",
			"| `provider` string | Provider. | required | MaxLength: 63<br>must be a name of lower-case letters, digits and -, that begins and ends with a letter or a digit, such as team-a<br>last |",
		},
		{
			"OfTheElementsOfAList", "| MaxItems: 16<br>items:Pattern: `^[A-Za-z0-9:_.@-]+\\.service$` |",
			"| MaxItems: 16<br>items: must be a name of a unit of systemd with the suffix .service, such as apt-daily.service |",
		},
		{
			"WithAnAlternative", "| Pattern: `^[A-Za-z0-9:_.@-]+\\.(service\\|socket\\|timer\\|mount\\|path\\|target\\|slice)$` |",
			"| must be a name of a unit of systemd with a suffix: .service, .socket, .timer, .mount, .path, .target or .slice, such as node-exporter.service |",
		},
		{
			"BelowAType", "Written as string. MinLength: 1. Pattern: `^[-a-z0-9*]+$`.",
			`Written as string. MinLength: 1. must be a name of a namespace, in which each \* stands for any number of characters, such as team-\*.`,
		},
		{
			"OfADuration", "| `\"2m\"` | Pattern: `^([0-9]+([.][0-9]+)?(ns\\|us\\|µs\\|ms\\|s\\|m\\|h))+$`<br>timeout must be at least 1s |",
			"| `\"2m\"` | timeout must be at least 1s |",
		},
		{"OfAStatus", "| Pattern: `^unknown$` |", "| Pattern: `^unknown$` |"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := withForms(tc.page); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
