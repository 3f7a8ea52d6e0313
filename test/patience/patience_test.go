package patience

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestTheLimitGrowsWithTheLoad(t *testing.T) {
	for name, tc := range map[string]struct {
		loadavg string
		err     error
		want    time.Duration
	}{
		"AComputerThatIsIdle":               {"0.10 0.20 0.30 1/100 1234\n", nil, base},
		"AComputerWithOneTaskAProcessor":    {"2.00 0.20 0.30 1/100 1234\n", nil, base},
		"AComputerWithThreeTasksAProcessor": {"6.00 0.20 0.30 1/100 1234\n", nil, 3 * base},
		"AComputerThatIsOverloaded":         {"80.00 0.20 0.30 1/100 1234\n", nil, most * base},
		"AComputerThatDoesNotReportIt":      {"", errors.New("no such file"), most * base},
		"AReportOfAnotherForm":              {"?", nil, most * base},
	} {
		t.Run(name, func(t *testing.T) {
			if got := limit(func(string) ([]byte, error) { return []byte(tc.loadavg), tc.err }, 2); got != tc.want {
				t.Errorf("the limit is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAwaitEndsWithoutProgress(t *testing.T) {
	for name, tc := range map[string]struct {
		// check returns the state in a second since the beginning.
		check func(second int) string
		want  string
		// after how many seconds.
		after int
	}{
		"WhenTheEventComes":          {func(s int) string { return map[bool]string{true: "0 of 1"}[s < 7] }, "", 7},
		"ALimitAfterTheLastChange":   {func(s int) string { return fmt.Sprintf("%d of 5", min(s/3, 2)) }, "2 of 5", 6 + 11},
		"TwoLimitsAfterTheBeginning": {func(s int) string { return fmt.Sprint("second ", s) }, "second 21", 21},
	} {
		t.Run(name, func(t *testing.T) {
			second := 0
			got := await(t.Context(), func() time.Time { return time.Unix(int64(second), 0) }, func(time.Duration) { second++ },
				func() time.Duration { return 10 * time.Second }, func(context.Context) string { return tc.check(second) })
			if got != tc.want || second != tc.after {
				t.Errorf("after %d s it returns %q, want %q after %d s", second, got, tc.want, tc.after)
			}
		})
	}
}

func TestAnEventIsFoundAtMostATwentiethLater(t *testing.T) {
	for waited, want := range map[time.Duration]time.Duration{
		0:                200 * time.Millisecond,
		4 * time.Second:  200 * time.Millisecond,
		20 * time.Second: time.Second,
		time.Hour:        2 * time.Second,
	} {
		if got := interval(waited); got != want {
			t.Errorf("after %s the next poll is in %s, want %s", waited, got, want)
		}
	}
}
