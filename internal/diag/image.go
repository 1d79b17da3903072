package diag

const cudaGuide = "https://docs.nvidia.com/deploy/cuda-compatibility/"

// imageProblems are images that do not fit a driver or a card, seen in their
// configuration before anything is pulled.
func imageProblems() []Problem {
	return []Problem{
		{
			Code: "image-needs-newer-driver", Area: "workload", Severity: Blocks,
			Title:     "The image needs a newer driver than the node has",
			Symptom:   "gpuctl check --image: fails; in a pod: unsatisfied condition, or CUDA driver version is insufficient",
			Cause:     "each CUDA major has a least driver (11 450.80.02, 12 525.60.13, 13 580.65.06), and an image may ask for more (NVIDIA_REQUIRE_CUDA); forward compatibility bridges it only on data-centre cards and where the image brings cuda-compat",
			Fix:       []string{"an image of an older CUDA", "or groups[].driver.branch: a newer one, where the card allows it", "NVIDIA_DISABLE_REQUIRE=1 only hides it and proves nothing"},
			Reference: cudaGuide,
		},
		{
			Code: "image-drops-gpu", Area: "workload", Severity: Blocks,
			Title:     "The image's CUDA has dropped this GPU",
			Symptom:   "gpuctl check --image: fails on Maxwell, Pascal and Volta cards",
			Cause:     "CUDA 13 compiles for compute capability 7.5 and later only; the driver may still be new enough",
			Fix:       []string{"an image of CUDA 12", "or a newer card: gpuctl check --image says which machines run it"},
			Reference: "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/",
		},
		{
			Code: "image-older-than-gpu", Area: "workload", Severity: Warns,
			Title:      "The image may be older than the GPU",
			Symptom:    "no kernel image is available for execution on the device, on Blackwell cards",
			Cause:      "CUDA before 12.8 does not know compute capability 10.0 and later; programs that bring PTX run nevertheless",
			Fix:        []string{"an image of CUDA 12.8 or later"},
			Unverified: true,
		},
		{
			Code: "image-not-judged", Area: "workload", Severity: Informs,
			Title:     "Whether the image runs is not known",
			Symptom:   "gpuctl check --image: unknown",
			Cause:     "its registry was not read, its configuration says nothing of CUDA, or the node's driver or card is not known",
			Fix:       []string{"docker login REGISTRY on this computer; --registry-ca FILE for a registry with a certificate of one's own", "once the driver is there: gpuctl check --image IMAGE again", "gpuctl smoke proves the GPUs, whatever the image"},
			Reference: cudaGuide,
		},
	}
}
