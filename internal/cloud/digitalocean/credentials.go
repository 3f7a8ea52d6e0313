package digitalocean

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// credentials are the content of a Secret: the JSON object of provider-upjet-digitalocean.
type credentials struct {
	Token string `json:"token"`
}

// tokenOf returns the API token of a Secret's value: a JSON object with the token, or the
// token alone. Errors never contain the value.
func tokenOf(value []byte) (string, error) {
	text := strings.TrimSpace(string(value))
	if !strings.HasPrefix(text, "{") {
		return checked(text)
	}
	c := credentials{}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return "", errors.New(`credentials: must be an API token or a JSON object {"token": "..."}`)
	}
	return checked(strings.TrimSpace(c.Token))
}

func checked(token string) (string, error) {
	if token == "" {
		return "", errors.New("credentials: token: must not be empty: DigitalOcean has no identity of pods")
	}
	for i, r := range token {
		if r <= ' ' || r > '~' {
			return "", fmt.Errorf("credentials: token: has a character that no token has at position %d", i+1)
		}
	}
	return token, nil
}
