module github.com/gpuctl/gpuctl/e2e

go 1.26
