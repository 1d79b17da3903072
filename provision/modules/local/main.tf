# Machines that commands of your own make, without any provider of Terraform: for
# a rental company that has only a command line, or for a lab of your own.
#
# "create" runs once for each machine and writes the machine as JSON to the file
# $RECORD, in the form of docs/terraform.md:
#
#   {"host": "203.0.113.10", "port": 22, "user": "ubuntu", "host_key": "ssh-ed25519 AAAA..."}
#
# "destroy" takes it away again. Both find the machine's name in $NAME.

terraform {
  required_version = ">= 1.5"
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

variable "create" {
  type        = string
  description = "Shell command that makes the machine $NAME and writes $RECORD."
}

variable "create_server" {
  type        = string
  default     = null
  description = "The same for the machine that runs the control plane; create if it is not given."
}

variable "destroy" {
  type        = string
  description = "Shell command that takes the machine $NAME away."
}

resource "terraform_data" "server" {
  input = {
    name    = "${var.name}-server"
    record  = abspath("${path.root}/machines/${var.name}-server.json")
    create  = coalesce(var.create_server, var.create)
    destroy = var.destroy
  }

  provisioner "local-exec" {
    command     = "mkdir -p \"$(dirname \"$RECORD\")\" && ${self.input.create}"
    environment = { NAME = self.input.name, RECORD = self.input.record }
  }

  provisioner "local-exec" {
    when        = destroy
    command     = "${self.input.destroy} && rm -f \"$RECORD\""
    environment = { NAME = self.input.name, RECORD = self.input.record }
  }
}

resource "terraform_data" "gpu" {
  count = var.gpus
  input = {
    name    = "${var.name}-${count.index + 1}"
    record  = abspath("${path.root}/machines/${var.name}-${count.index + 1}.json")
    create  = var.create
    destroy = var.destroy
  }

  provisioner "local-exec" {
    command     = "mkdir -p \"$(dirname \"$RECORD\")\" && ${self.input.create}"
    environment = { NAME = self.input.name, RECORD = self.input.record }
  }

  provisioner "local-exec" {
    when        = destroy
    command     = "${self.input.destroy} && rm -f \"$RECORD\""
    environment = { NAME = self.input.name, RECORD = self.input.record }
  }
}

output "gpuctl" {
  description = "The machines, in the form that gpuctl reads."
  value = concat(
    [merge({ role = "server" }, jsondecode(file(terraform_data.server.output.record)), { name = terraform_data.server.output.name })],
    [for vm in terraform_data.gpu : merge({ role = "agent", group = "gpu" }, jsondecode(file(vm.output.record)), { name = vm.output.name })],
  )
}
