package token

import (
	"testing"
	"time"
)

func TestATokenIsRenewedWellBeforeItExpires(t *testing.T) {
	asked := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	if got, want := RenewAt(asked, asked.Add(time.Hour)), asked.Add(40*time.Minute); !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
