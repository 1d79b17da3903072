# GPU machines on Google Cloud for gpuctl, with an inventory in the output "gpuctl".
#
# Checked for form only (terraform fmt): nobody has rented a machine with it.
# Read it, and look at the plan, before you apply.

terraform {
  required_version = ">= 1.5"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 5.0"
    }
  }
}

provider "google" {
  project = var.project
  zone    = var.zone
}

variable "project" {
  type        = string
  description = "Project that pays."
}

variable "zone" {
  type        = string
  description = "Zone, such as us-central1-a."
}

variable "name" {
  type        = string
  default     = "gpu"
  description = "Prefix of the names of the machines."
}

variable "gpus" {
  type        = number
  default     = 1
  description = "How many GPU machines; gpuctl scale sets it."
}

variable "machine_type" {
  type        = string
  description = "Machine type with its GPUs, such as g2-standard-8."
}

variable "gpus_per_machine" {
  type        = number
  description = "GPUs that the machine type has; gpuctl refuses a machine with fewer."
}

variable "server_type" {
  type        = string
  default     = "e2-standard-2"
  description = "Machine type of the machine without a GPU that runs the control plane."
}

variable "public_key" {
  type        = string
  description = "Your public SSH key."
}

variable "ssh_from" {
  type        = list(string)
  description = "Networks that may reach SSH, such as [\"198.51.100.7/32\"]."
}

variable "spot" {
  type        = bool
  default     = false
  description = "Rent the GPU machines as spot machines."
}

locals {
  image = "ubuntu-os-cloud/ubuntu-2404-lts-amd64"
  keys  = { "ssh-keys" = "ubuntu:${var.public_key}" }
}

resource "google_compute_network" "gpuctl" {
  name                    = var.name
  auto_create_subnetworks = true
}

resource "google_compute_firewall" "ssh" {
  name          = "${var.name}-ssh"
  network       = google_compute_network.gpuctl.name
  source_ranges = var.ssh_from

  allow {
    protocol = "tcp"
    ports    = ["22"]
  }
}

resource "google_compute_firewall" "inside" {
  name        = "${var.name}-inside"
  network     = google_compute_network.gpuctl.name
  source_tags = [var.name]
  target_tags = [var.name]

  allow {
    protocol = "all"
  }
}

resource "google_compute_instance" "server" {
  name         = "${var.name}-server"
  machine_type = var.server_type
  tags         = [var.name]
  metadata     = local.keys

  boot_disk {
    initialize_params {
      image = local.image
      size  = 50
    }
  }

  network_interface {
    network = google_compute_network.gpuctl.name
    access_config {}
  }
}

resource "google_compute_instance" "gpu" {
  count        = var.gpus
  name         = "${var.name}-${count.index + 1}"
  machine_type = var.machine_type
  tags         = [var.name]
  metadata     = local.keys

  boot_disk {
    initialize_params {
      image = local.image
      size  = 200
    }
  }

  network_interface {
    network = google_compute_network.gpuctl.name
    access_config {}
  }

  # Machines with GPUs cannot be moved while they run.
  scheduling {
    on_host_maintenance = "TERMINATE"
    automatic_restart   = !var.spot
    preemptible         = var.spot
    provisioning_model  = var.spot ? "SPOT" : "STANDARD"
  }
}

output "gpuctl" {
  description = "The machines, in the form that gpuctl reads."
  value = concat([{
    name    = google_compute_instance.server.name
    role    = "server"
    group   = null
    host    = google_compute_instance.server.network_interface[0].access_config[0].nat_ip
    private = google_compute_instance.server.network_interface[0].network_ip
    user    = "ubuntu"
    gpus    = 0
    }], [for vm in google_compute_instance.gpu : {
    name    = vm.name
    role    = "agent"
    group   = "gpu"
    host    = vm.network_interface[0].access_config[0].nat_ip
    private = vm.network_interface[0].network_ip
    user    = "ubuntu"
    gpus    = var.gpus_per_machine
  }])
}
