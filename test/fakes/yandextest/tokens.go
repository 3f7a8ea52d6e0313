package yandextest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	iam "github.com/yandex-cloud/go-genproto/yandex/cloud/iam/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	audience = "https://iam.api.cloud.yandex.net/iam/v1/tokens"
	// lifetime of an IAM token, and the longest of a signed one.
	lifetime, longest = 12 * time.Hour, time.Hour
)

// issued is an IAM token.
type issued struct {
	expires time.Time
	folders []string
}

func (i issued) mayView(folder string) bool { return slices.Contains(i.folders, folder) }

// Issue an IAM token, as the metadata service of a VM does.
func (s *Server) Issue(folders ...string) (token string, expires time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token = fmt.Sprintf("t1.s3cret-%d", len(s.issued))
	s.issued[token] = issued{expires: s.opts.Now().Add(lifetime), folders: folders}
	return token, s.issued[token].expires
}

// Revoke all IAM tokens.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token := range s.issued {
		s.issued[token] = issued{}
	}
}

// tokenOf a call, from its metadata.
func (s *Server) tokenOf(ctx context.Context) (issued, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get("authorization")
	if len(values) == 0 {
		return issued{}, status.Error(codes.Unauthenticated, "Unknown api key or token was not provided")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.issued[strings.TrimPrefix(values[0], "Bearer ")]
	if !ok || !s.opts.Now().Before(t.expires) {
		return issued{}, status.Error(codes.Unauthenticated, "The token is invalid")
	}
	return t, nil
}

type tokens struct {
	iam.UnimplementedIamTokenServiceServer
	server *Server
}

// Create exchanges a token that a service account signed for an IAM token.
func (t tokens) Create(_ context.Context, req *iam.CreateIamTokenRequest) (*iam.CreateIamTokenResponse, error) {
	if req.GetJwt() == "" {
		return nil, status.Error(codes.InvalidArgument, "Validation failed:\n  - identity: One of the options must be selected")
	}
	key, err := t.server.verify(req.GetJwt())
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	token, expires := t.server.Issue(key.Folders...)
	return &iam.CreateIamTokenResponse{IamToken: token, ExpiresAt: timestamppb.New(expires)}, nil
}

// verify a signed token: its method PS256, its key, issuer, audience and lifetime.
func (s *Server) verify(signed string) (Key, error) {
	var key Key
	claims := &jwt.RegisteredClaims{}
	_, err := jwt.NewParser(jwt.WithValidMethods([]string{"PS256"}), jwt.WithAudience(audience), jwt.WithExpirationRequired(), jwt.WithTimeFunc(s.opts.Now)).
		ParseWithClaims(signed, claims, func(t *jwt.Token) (any, error) {
			kid, _ := t.Header["kid"].(string)
			if kid == "" {
				return nil, fmt.Errorf("The required field 'kid' is missing from the JWT header")
			}
			known, ok := s.opts.Keys()[kid]
			if !ok {
				return nil, fmt.Errorf("Public key %s not found", kid)
			}
			key = known
			return known.Public, nil
		})
	switch {
	case err != nil:
		return key, fmt.Errorf("The JWT is invalid: %w", err)
	case claims.Issuer != key.ServiceAccount:
		return key, fmt.Errorf("The JWT issuer does not match the subject of the key")
	case claims.IssuedAt == nil || claims.ExpiresAt.Sub(claims.IssuedAt.Time) > longest:
		return key, fmt.Errorf("The JWT must not be valid for longer than 1 hour")
	}
	return key, nil
}
