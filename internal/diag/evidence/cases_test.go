package evidence

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cases are reports of users by their numbers, and the tests that hold their
// right answers: file and function.
func cases() map[string][]string {
	return map[string][]string{
		"001": {"bootstrap/sshconn/config_test.go TestProxyJumpThroughAlias"},
		"002": {"bootstrap/sshconn/config_test.go TestMatchFinalInSystemConfig"},
		"004": {"bootstrap/sshconn/config_test.go TestMatchCriterionUnknown"},
		"005": {"bootstrap/sshconn/config_test.go TestIdentityTokens"},
		"007": {"bootstrap/sshconn/hostkeys_test.go TestKnownHostsHasOnlyEd25519"},
		"008": {"bootstrap/sshconn/hostkeys_internal_test.go TestOldLinesCostOnlyTheirHost", "bootstrap/sshconn/hostkeys_internal_test.go TestRecordedLines"},
		"010": {"bootstrap/sshconn/hostkeys_test.go TestHostCertificates"},
		"012": {"bootstrap/sshconn/hostkeys_internal_test.go TestChangedKeyInHashedFile", "bootstrap/sshconn/hostkeys_test.go TestChangedKey"},
		"013": {"bootstrap/sshconn/auth_test.go TestAgentFullOfKeys"},
		"015": {"bootstrap/sshconn/auth_test.go TestDamagedKeyFiles", "bootstrap/sshconn/auth_test.go TestLockedKeyFile", "bootstrap/sshconn/auth_test.go TestKeyFileMode"},
		"016": {"bootstrap/sshconn/contract_test.go TestContract", "bootstrap/sshconn/wire_test.go TestLoginLine"},
		"017": {"bootstrap/sshconn/wire_test.go TestFrames", "bootstrap/host/probe/frame_test.go *"},
		"019": {"bootstrap/host/parse_test.go TestOSRelease"},
		"020": {"bootstrap/sshconn/sudo_test.go TestSudoKinds", "bootstrap/sshconn/wire_test.go TestRefusedKind"},
		"022": {"bootstrap/sshconn/sudo_test.go TestNoSudoProgram"},
		"023": {"bootstrap/host/parse_test.go TestOSRelease"},
		"025": {"bootstrap/host/parse_test.go TestOSRelease", "bootstrap/nvidia/operator_test.go TestTheOperatorBringsTheDriver", "charts/codes_test.go TestWaitsEndWithAnEntry"},
		"027": {"internal/config/config_test.go TestNodeName"},
		"028": {"bootstrap/host/transaction_test.go TestAptIsAskedAgainOnlyWhereALockIsHeld"},
		"030": {"bootstrap/host/cases_test.go TestClocksOfFourMachines", "internal/diag/clock_test.go *", "bootstrap/k3s/failures_test.go TestClassifyOfServersAndNetworks"},
		"032": {"bootstrap/host/parse_test.go TestOnlyListenersAreListeners", "bootstrap/host/findings_test.go TestPortsOfAnotherKubernetes", "bootstrap/k3s/plan_test.go TestFindings"},
		"033": {"bootstrap/host/parse_test.go TestDriverVersionLineHasTwoShapes", "bootstrap/nvidia/nvidia_test.go TestFindings"},
		"034": {"bootstrap/host/parse_test.go TestSMISaysWhatFailed", "bootstrap/nvidia/cases_test.go TestOneOfFourIsLost"},
		"035": {"bootstrap/host/parse_test.go TestSMIKeepsEveryGPU"},
		"037": {"bootstrap/host/cases_recorded_test.go TestMIGOfFourDriversCase037", "bootstrap/nvidia/cases_recorded_test.go TestMIGWithoutSlicesCase037"},
		"039": {"bootstrap/host/cases_recorded_test.go TestSentencesAreNoValuesCase039", "bootstrap/nvidia/cases_recorded_test.go TestACardTooOldCase039", "internal/cuda/cuda_test.go TestServesWhatBannersSay"},
		"040": {"bootstrap/nvidia/cases_test.go TestWhatOnTheBusIsAGPU"},
		"041": {"bootstrap/nvidia/xid_test.go TestXidsByWhatTheyMean", "bootstrap/nvidia/xid_test.go TestRecoveryActionsInTheirWordings", "bootstrap/host/parse_test.go TestKernelLogKeepsXids"},
		"043": {"bootstrap/nvidia/nvidia_test.go TestFindings"},
		"045": {"bootstrap/nvidia/cases_test.go TestNouveauHoldsThreeGPUs"},
		"046": {"bootstrap/nvidia/nvidia_test.go TestFindings", "bootstrap/nvidia/cards_test.go TestCompare"},
		"047": {"bootstrap/k3s/template_test.go TestTemplateFindings", "bootstrap/k3s/template_test.go TestGeneration"},
		"049": {"bootstrap/host/cases_test.go TestTwoContainerdsOnOneMachine", "bootstrap/operatordriver_test.go TestTheOperatorsToolkitFindsK3sContainerdCase049", "internal/doctor/troubles_test.go TestTroubles"},
		"050": {"bootstrap/k3s/template_test.go TestTemplateFindings", "internal/doctor/troubles_test.go TestTroubles"},
		"052": {"bootstrap/k3s/cases_test.go TestTheMachinesOwnConfigOfAList", "bootstrap/k3s/render_test.go TestListsAddUp"},
		"053": {"bootstrap/k3s/journal_test.go TestClassify", "internal/kube/node_test.go TestNodeChanges", "internal/kube/rejected_test.go TestWhyRejected"},
		"055": {"internal/kube/node_test.go TestRemovalOrder", "bootstrap/node_test.go TestHowANodeLeaves"},
		"057": {"bootstrap/k3s/registries_test.go TestCheckRegistries", "bootstrap/k3s/registries_test.go TestMergeRegistries"},
		"058": {"charts/decide_test.go TestDecide", "charts/ensure_test.go TestEnsureMends"},
		"060": {"internal/cuda/cuda_test.go TestDecideCase060AndSiblings", "internal/smoke/fit_test.go TestTheImageIsJudgedBeforeThePod", "internal/doctor/image_test.go TestDriverTooOldForThePodsImage"},
		"061": {"internal/kube/drain_test.go TestDrainIsBlockedFromTheStart", "internal/kube/drain_test.go TestDrainMeetsABudget"},
		"062": {"internal/sharing/sharing_test.go TestFilesOfUsers", "internal/doctor/plugin_test.go TestPluginConfigsOfOthersCase062"},
		"064": {"internal/sharing/sharing_test.go TestFilesOfUsers", "internal/sharing/sharing_test.go TestSeenAndMissing"},
		"065": {"bootstrap/nvidia/cases_test.go TestMIGModesThatWaitForAReset"},
		"067": {"provision/provision_test.go TestMapFromNameToAddress"},
		"068": {"provision/provision_test.go TestAddressWithMask"},
		"070": {"provision/provision_test.go TestNullsAndNestedObjects"},
		"072": {"internal/config/config_test.go TestTextStaysAsWritten"},
		"073": {"internal/kube/kubeconfig_test.go TestMergeMeetsAnOldCluster", "internal/kube/kubeconfig_test.go TestMergeRefusesAForeignName"},
		"075": {"internal/kube/kubeconfig_test.go TestMergeIntoSeveralFiles"},
	}
}

func TestEveryCaseHasItsTest(t *testing.T) {
	if n := len(cases()); n != 50 {
		t.Errorf("%d cases are cited", n)
	}
	for number, tests := range cases() {
		for _, at := range tests {
			file, test, _ := strings.Cut(at, " ")
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Errorf("case %s: %v", number, err)
				continue
			}
			if test != "*" && !strings.Contains(string(text), "\nfunc "+test+"(t *testing.T)") {
				t.Errorf("case %s: %s has no %s", number, file, test)
			}
		}
	}
}
