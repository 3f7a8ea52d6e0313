package lift

// Module is the path of the Go module that the generated packages are in.
const Module = "github.com/drover-dev/drover"
