module github.com/drover-dev/drover/tools/prose

go 1.26.0
