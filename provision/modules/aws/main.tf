# GPU machines on AWS for gpuctl, with an inventory in the output "gpuctl".
#
# Checked for form only (terraform fmt): nobody has rented a machine with it.
# Read it, and look at the plan, before you apply.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

provider "aws" {
  region = var.region
}

variable "region" {
  type        = string
  description = "Region, such as us-east-1."
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

variable "instance_type" {
  type        = string
  description = "Instance type of the GPU machines, such as g6.xlarge."
}

variable "gpus_per_machine" {
  type        = number
  description = "GPUs that the instance type has; gpuctl refuses a machine with fewer."
}

variable "server_type" {
  type        = string
  default     = "m7i.large"
  description = "Instance type of the machine without a GPU that runs the control plane."
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
  description = "Rent the GPU machines as spot instances."
}

data "aws_ssm_parameter" "ubuntu" {
  name = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
}

resource "aws_key_pair" "gpuctl" {
  key_name_prefix = "${var.name}-"
  public_key      = var.public_key
}

# SSH from you; everything between the machines.
resource "aws_security_group" "gpuctl" {
  name_prefix = "${var.name}-"

  ingress {
    from_port   = 22
    to_port     = 22
    protocol    = "tcp"
    cidr_blocks = var.ssh_from
  }

  ingress {
    from_port = 0
    to_port   = 0
    protocol  = "-1"
    self      = true
  }

  egress {
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_instance" "server" {
  ami                    = data.aws_ssm_parameter.ubuntu.value
  instance_type          = var.server_type
  key_name               = aws_key_pair.gpuctl.key_name
  vpc_security_group_ids = [aws_security_group.gpuctl.id]

  root_block_device {
    volume_size = 50
  }

  tags = {
    Name = "${var.name}-server"
  }

  lifecycle {
    ignore_changes = [ami] # a newer image is no reason for another machine
  }
}

resource "aws_instance" "gpu" {
  count                  = var.gpus
  ami                    = data.aws_ssm_parameter.ubuntu.value
  instance_type          = var.instance_type
  key_name               = aws_key_pair.gpuctl.key_name
  vpc_security_group_ids = [aws_security_group.gpuctl.id]

  root_block_device {
    volume_size = 200
  }

  dynamic "instance_market_options" {
    for_each = var.spot ? [1] : []
    content {
      market_type = "spot"
    }
  }

  tags = {
    Name = "${var.name}-${count.index + 1}"
  }

  lifecycle {
    ignore_changes = [ami]
  }
}

output "gpuctl" {
  description = "The machines, in the form that gpuctl reads."
  value = concat([{
    name    = "${var.name}-server"
    role    = "server"
    group   = null
    host    = aws_instance.server.public_ip
    private = aws_instance.server.private_ip
    user    = "ubuntu"
    gpus    = 0
    }], [for i, vm in aws_instance.gpu : {
    name    = "${var.name}-${i + 1}"
    role    = "agent"
    group   = "gpu"
    host    = vm.public_ip
    private = vm.private_ip
    user    = "ubuntu"
    gpus    = var.gpus_per_machine
  }])
}
