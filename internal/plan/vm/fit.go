package vm

import (
	"regexp"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/drover-dev/drover/internal/names"
)

// fit is the function text.fit(allowed, longest) of the binding's language: see fn.Infrastructure.
var fit = cel.Function("fit", cel.MemberOverload("string_fit_string_int",
	[]*cel.Type{cel.StringType, cel.StringType, cel.IntType}, cel.StringType,
	cel.FunctionBinding(func(args ...ref.Val) ref.Val {
		text, class, longest := string(args[0].(types.String)), string(args[1].(types.String)), int(args[2].(types.Int)) //nolint:forcetypeassert // CEL checks the types of the overload.
		re, err := regexp.Compile("^[" + class + "]$")
		if err != nil {
			return types.NewErr("fit: %q are no characters: %v", class, err)
		}
		if least := len(names.Hash()) + 1; longest <= least {
			return types.NewErr("fit: %d characters are too few: there must be more than %d", longest, least)
		}
		return types.String(fitted(text, re, longest))
	})))

// fitted returns the text itself if it has only allowed characters and is short enough. Otherwise
// it replaces characters and shortens the text. The result ends with a hash, so that different
// texts stay different.
func fitted(text string, allowed *regexp.Regexp, longest int) string {
	out := strings.Map(func(r rune) rune {
		if allowed.MatchString(string(r)) {
			return r
		}
		return '-'
	}, text)
	if out == text && len(text) <= longest {
		return text
	}
	hash := "-" + names.Hash(text)
	return out[:min(len(out), longest-len(hash))] + hash
}
