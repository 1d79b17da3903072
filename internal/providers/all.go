package providers

// Sources, unless a line says otherwise: docs.lambda.ai, docs.vast.ai,
// docs.nebius.com, the Hyperstack, Scaleway, OVHcloud and Crusoe documentation, and
// the backends of dstackai/dstack and skypilot-org/skypilot.

// All are the providers that are known, by name.
func All() []Provider {
	return append(hyperscalers(), rentals()...)
}

func hyperscalers() []Provider {
	return []Provider{
		{
			Name: "aws", Title: "AWS", Unit: "VM", Driver: "Deep Learning AMI: yes; plain Ubuntu: none",
			Network:      "security groups: let the machines reach each other; an instance with several interfaces gets no public IP by itself",
			Interconnect: "EFA between machines; the 8-GPU types need the fabric manager",
			Spot:         Notice{How: "http://169.254.169.254/latest/meta-data/spot/instance-action", Seconds: 120, Left: "as chosen: terminated, stopped or hibernated (no notice then)"},
			Terraform:    "hashicorp/aws",
		},
		{
			Name: "azure", Title: "Azure", Unit: "VM", Driver: "ubuntu-hpc image: yes, but not for NV A10 types, which need the GRID driver",
			Network:   "network security group: let the machines reach each other",
			Spot:      Notice{How: "http://169.254.169.254/metadata/scheduledevents, EventType Preempt", Seconds: 30, Left: "deallocated or deleted"},
			Stop:      Stop{Poweroff: "billed in full", Ends: "deallocate", Command: "az vm deallocate --resource-group GROUP --name NAME"},
			Terraform: "hashicorp/azurerm",
		},
		{
			Name: "gcp", Title: "Google Cloud", Unit: "VM", Driver: "Deep Learning image: yes; plain: none",
			Network:      "VPC firewall: let the machines reach each other",
			Interconnect: "A3 types need the set-up of GPUDirect-TCPX",
			Spot:         Notice{How: "http://metadata.google.internal/computeMetadata/v1/instance/preempted", Seconds: 30, Left: "stopped or deleted"},
			Stop:         Stop{Poweroff: "ends it", Ends: "stop", Command: "gcloud compute instances stop NAME --zone ZONE", StillPaid: "disks and addresses"},
			Terraform:    "hashicorp/google",
		},
		{
			Name: "oci", Title: "Oracle Cloud", Unit: "VM or bare metal", User: "ubuntu", Driver: "depends on the image",
		},
	}
}

func rentals() []Provider {
	return []Provider{
		{
			Name: "coreweave", Title: "CoreWeave", Unit: "managed Kubernetes",
			Unfit: "CoreWeave rents a managed Kubernetes, no machines: there is nothing to bootstrap",
		},
		{
			Name: "crusoe", Title: "Crusoe", Unit: "VM", User: "ubuntu", NoForwarding: true,
			Driver:       "images named nvidia-sxm-docker and nvidia-pcie-docker: driver and Docker; the CPU base image has neither",
			Interconnect: "-ib types need an InfiniBand partition; HPC-X and the NCCL topology file are on the machine",
			Storage:      "the ephemeral NVMe arrives unformatted",
			Stop:         Stop{Ends: "stop", StillPaid: "with a commitment, stopped VMs too"},
			Terraform:    "crusoecloud/crusoe",
		},
		{
			Name: "denvr", Title: "Denvr", Unit: "VM", Stop: Stop{Poweroff: "billed in full", Ends: "stop in the console or by the API", StillPaid: "disks"},
		},
		{
			Name: "digitalocean", Title: "DigitalOcean GPU Droplet", Unit: "VM", User: "root",
			Stop: Stop{Poweroff: "billed in full", Ends: "destroy (take a snapshot first)", Command: "doctl compute droplet delete NAME"},
		},
		{
			Name: "fluidstack", Title: "FluidStack", Unit: "VM", Driver: "often none; the reboot after installing one may take long on A100",
			Network: "ports are opened by the API",
		},
		{
			Name: "hetzner", Title: "Hetzner GEX (dedicated)", Unit: "bare metal", User: "root",
			Driver: "none; a machine made by installimage has no cloud-init",
		},
		{
			Name: "hyperstack", Title: "Hyperstack", Unit: "VM",
			Driver:    "the image's name says it: R535 CUDA 12.2, with or without Docker; plain Ubuntu has none",
			Network:   "nothing comes in until there is a rule, not even SSH; a public IP only with the floating-IP flag",
			Stop:      Stop{Ends: "hibernate or delete; SHUTOFF is billed in full", StillPaid: "root disk and public IP"},
			Terraform: "NexGenCloud/hyperstack",
		},
		{
			Name: "lambda", Title: "Lambda (on-demand)", Unit: "VM", User: "ubuntu", Driver: "Lambda Stack: driver and CUDA",
			Network:   "only ICMP and SSH come in; rule sets are attached at launch, global rules can be changed later",
			Storage:   "terminating loses the root disk; filesystems stay",
			Stop:      Stop{Ends: "terminate: there is no stop"},
			Terraform: "elct9620/lambdalabs",
		},
		{
			Name: "lambda-cluster", Title: "Lambda 1-Click Cluster", Unit: "VMs behind a head node", User: "ubuntu", Driver: "yes",
			Network: "workers have private addresses only: give the head node as --jump",
		},
		{
			Name: "nebius", Title: "Nebius", Unit: "VM", NoForwarding: true,
			Driver: "image families named after CUDA, such as ubuntu24.04-cuda13.0, boot disk of 40 GB at least; Docker is there", Network: "a dynamic public IP is lost on stop",
			Interconnect: "InfiniBand only where the VMs share a GPU cluster with a fabric",
			Spot:         Notice{How: "an ordinary shutdown (SIGTERM), no endpoint", Seconds: 60, Left: "stopped, disks kept, dynamic public IP lost"},
			Stop:         Stop{Poweroff: "counted as a failure: the VM is rebooted and billing goes on", Ends: "stop by the API"},
			Terraform:    "terraform-provider.storage.eu-north1.nebius.cloud/nebius/nebius",
		},
		{
			Name: "ovh", Title: "OVHcloud", Unit: "VM", Driver: "none",
			Network: "public address, and a vRack where wanted",
		},
		{
			Name: "paperspace", Title: "Paperspace", Unit: "VM", User: "paperspace", Driver: "ML-in-a-Box template: yes",
			Network: "one private /24; a machine can move to another private network but not leave",
		},
		{
			Name: "runpod", Title: "RunPod Pods", Unit: "container",
			Unfit: "RunPod rents unprivileged containers without systemd: k3s cannot run there",
		},
		{
			Name: "scaleway", Title: "Scaleway", Unit: "VM", User: "root", Driver: "images ubuntu_jammy_gpu_os_12 and ubuntu_noble_gpu_os_12: driver, Docker and toolkit; plain Ubuntu: none",
			Network: "private network optional; security groups",
			Stop:    Stop{Poweroff: "standby, billed in full", Ends: "power off by the API or the console", StillPaid: "address and volumes"},
		},
		{
			Name: "sfcompute", Title: "SF Compute", Unit: "VM", Driver: "depends on the image",
			Network:      "no public IP, no private network between machines: an overlay VPN is needed first; up to 10 minutes to boot",
			Interconnect: "no InfiniBand",
		},
		{
			Name: "tensordock", Title: "TensorDock", Unit: "VM on a partner's host", RandomPorts: true,
			Network: "a dedicated IP, or a map of ports to other ports outside: ask for the dedicated IP", Storage: "disk of 100 GB at least",
		},
		{
			Name: "vast", Title: "Vast.ai (default)", Unit: "container",
			Unfit: "Vast.ai rents Docker containers unless you take a VM template (--provider vast-vm): k3s cannot run in one",
		},
		{
			Name: "vast-vm", Title: "Vast.ai VM template", Unit: "VM", RandomPorts: true, Driver: "CUDA and Docker in the Ubuntu 22.04 VM template",
			Network: "ports are mapped to random ones outside; SSH keys are fixed when the VM is made",
		},
		{
			Name: "verda", Title: "Verda (formerly DataCrunch)", Unit: "VM", User: "root", Driver: "Ubuntu 24.04 + CUDA 13.0 Open + Docker for new cards; Ubuntu 22.04 + CUDA 12.0 + Docker for V100 and A6000",
			Spot:      Notice{Left: "the OS volume goes by its policy: keep_detached, move_to_trash or delete_permanently"},
			Terraform: "verda-cloud/verda",
		},
		{
			Name: "vultr", Title: "Vultr", Unit: "VM or bare metal", User: "root", Driver: "GPU image: yes",
			Network: "private network (VPC) optional",
		},
	}
}
