package fakes

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
)

// InMemory returns a transport that calls a fake without a server: tests can use a fake clock,
// which advances while all goroutines wait. A fake that panics with [http.ErrAbortHandler] cuts
// the connection, and the client gets the error that net/http has for that.
func InMemory(fake http.Handler) http.RoundTripper { return inMemory{fake} }

type inMemory struct{ fake http.Handler }

func (t inMemory) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler:
			resp, err = nil, io.ErrUnexpectedEOF
		default:
			panic(cause)
		}
	}()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	in := req.Clone(req.Context())
	in.Host, in.RequestURI = req.URL.Host, req.URL.RequestURI()
	if in.Body == nil {
		in.Body = http.NoBody
	}
	if req.URL.Scheme == "https" {
		in.TLS = &tls.ConnectionState{}
	}
	w := httptest.NewRecorder()
	t.fake.ServeHTTP(w, in)
	resp = w.Result()
	resp.Request = req
	return resp, nil
}
