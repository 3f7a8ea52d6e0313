package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/drover-dev/drover/internal/localcloud"
)

func (s *server) authenticated(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(given))
		if !ok || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			s.fail(w, r, localcloud.NewError(localcloud.CodeUnauthenticated, "the call needs the header Authorization: Bearer with the cloud's token"))
			return
		}
		next.ServeHTTP(w, r)
	})
}
