package cuda

import (
	"regexp"
	"strings"
)

// class is how NVIDIA sells a card; forward compatibility depends on it.
type class int

const (
	otherClass class = iota
	dataCentre
	workstation
	geForce
)

var (
	dataCentreName = regexp.MustCompile(`\b(Tesla|[AL](2|4|10|10G|10M|16|30|40|40S|40G|100|100X|800)|H(20|100|200|800)|GH200|G?B[23]00|[VP]100|P4|P40|T4G?)\b`)
	vGPUProfile    = regexp.MustCompile(`-[0-9]+(-[0-9]+)?[ABCQ]$`)
)

// OfLabel is a card by the value of the label nvidia.com/gpu.product, which holds
// dashes for blanks and "-SHARED" where GPUs are shared.
func OfLabel(product, compute string) GPU {
	product = strings.TrimSuffix(product, "-SHARED")
	if !vGPUProfile.MatchString(product) {
		product = strings.ReplaceAll(product, "-", " ")
	}
	return GPU{Name: product, Compute: compute}
}

func (g GPU) class() class {
	switch {
	case vGPUProfile.MatchString(g.Name):
		return otherClass
	case strings.Contains(g.Name, "GeForce"), strings.Contains(g.Name, "TITAN"):
		return geForce
	case strings.Contains(g.Name, "RTX"), strings.Contains(g.Name, "Quadro"):
		return workstation
	case dataCentreName.MatchString(g.Name):
		return dataCentre
	}
	return otherClass
}

// brands are the words that the driver may use for the card's brand, as the
// Container Toolkit compares them; none where the name does not tell. Cards of
// data centres are "tesla" to older drivers and "nvidia" to newer ones.
func (g GPU) brands() []string {
	if vGPUProfile.MatchString(g.Name) {
		return nil
	}
	for _, b := range []struct {
		part  string
		words []string
	}{
		{"GeForce RTX", []string{"geforcertx", "geforce"}}, {"GeForce", []string{"geforce"}},
		{"TITAN RTX", []string{"titanrtx"}}, {"TITAN", []string{"titan"}},
		{"Quadro RTX", []string{"quadrortx"}}, {"Quadro", []string{"quadro"}}, {"RTX", []string{"nvidiartx", "quadrortx"}},
	} {
		if strings.Contains(g.Name, b.part) {
			return b.words
		}
	}
	if g.class() == dataCentre {
		return []string{"tesla", "nvidia"}
	}
	return nil
}
