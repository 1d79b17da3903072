module github.com/gpuctl/gpuctl/e2e

go 1.26.0

require (
	github.com/ProtonMail/go-crypto v1.5.2
	github.com/google/go-containerregistry v0.22.1
	github.com/gpuctl/gpuctl v0.0.0-00010101000000-000000000000
	golang.org/x/crypto v0.59.0
	golang.org/x/sync v0.25.0
	golang.org/x/sys v0.50.0
	sigs.k8s.io/yaml v1.6.0
)

require (
	github.com/kevinburke/ssh_config v1.6.0 // indirect
	github.com/sethvargo/go-retry v0.5.0 // indirect
	github.com/skeema/knownhosts v1.3.3 // indirect
)

require (
	github.com/cloudflare/circl v1.6.3 // indirect
	github.com/docker/cli v29.7.2+incompatible // indirect
	github.com/docker/docker-credential-helpers v0.9.5 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/sirupsen/logrus v1.9.4 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	gotest.tools/v3 v3.5.2 // indirect
)

replace github.com/gpuctl/gpuctl => ../
