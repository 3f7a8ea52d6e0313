package fakes

import (
	"encoding/json"
	"net/http"
)

// AnswerJSON writes an answer. It has no body if answer is nil.
func AnswerJSON(w http.ResponseWriter, status int, answer any) {
	if answer == nil {
		w.WriteHeader(status)
		return
	}
	b, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}
