package cluster

import (
	"context"
	"crypto/subtle"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Bootstrap tells whether <id>.<secret> is a bootstrap token that may log in.
func Bootstrap(ctx context.Context, c kubernetes.Interface, idAndSecret string) bool {
	id, secret, found := strings.Cut(idAndSecret, ".")
	if !found {
		return false
	}
	s, err := c.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, "bootstrap-token-"+id, metav1.GetOptions{})
	if err != nil || string(s.Data["usage-bootstrap-authentication"]) != "true" {
		return false
	}
	if until := string(s.Data["expiration"]); until != "" {
		t, err := time.Parse(time.RFC3339, until)
		if err != nil || time.Now().After(t) {
			return false
		}
	}
	return subtle.ConstantTimeCompare(s.Data["token-secret"], []byte(secret)) == 1
}
