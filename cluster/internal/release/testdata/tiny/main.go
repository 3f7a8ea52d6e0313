// Command tiny has a module under MPL-2.0, and one with a NOTICE.
package main

import (
	"os"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/errwrap"
)

func main() {
	os.Exit(levenshtein.Distance("a", errwrap.Wrapf("a", nil).Error(), nil))
}
