package simulator

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"runtime/debug"
	"strconv"
	"testing"

	_ "pgregory.net/rapid"
)

// seed of all random numbers of the run: that of -rapid.seed, or a new one.
var seed int64

// TestMain collects garbage rarely: a history has a small heap and creates much garbage. Each run
// has other histories. The seed repeats them: -rapid.seed=SEED, with the same -rapid.checks.
func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(400)
	given := flag.Lookup("rapid.seed")
	if given.Value.String() == "0" {
		if err := flag.Set(given.Name, strconv.Itoa(1+rand.Intn(1<<31-1))); err != nil {
			panic(err)
		}
	}
	fmt.Printf("the histories are those of -rapid.seed=%s\n", given.Value)
	var err error
	if seed, err = strconv.ParseInt(given.Value.String(), 10, 64); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
