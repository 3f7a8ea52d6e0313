module example.org/tiny

go 1.26.0

require (
	github.com/agext/levenshtein v1.2.3
	github.com/hashicorp/errwrap v1.1.0
)
