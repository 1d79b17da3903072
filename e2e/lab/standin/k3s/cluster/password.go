package cluster

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/supervisor"
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/scrypt"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	passwordType   = "k3s.cattle.io/node-password"
	passwordSuffix = ".node-password.k3s"
)

// VerifyNode compares a node's password with the recorded hash. The first
// password given for a name is recorded. Source: k3s pkg/nodepassword.
func VerifyNode(ctx context.Context, c kubernetes.Interface, node, password string) error {
	secrets := c.CoreV1().Secrets(metav1.NamespaceSystem)
	secret, err := secrets.Get(ctx, node+passwordSuffix, metav1.GetOptions{})
	if err == nil {
		return compare(string(secret.Data["hash"]), password)
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	hash, err := hashOf(password)
	if err != nil {
		return err
	}
	immutable := true
	_, err = secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: node + passwordSuffix},
		Type:       passwordType,
		Immutable:  &immutable,
		Data:       map[string][]byte{"hash": []byte(hash)},
	}, metav1.CreateOptions{})
	return err
}

// OwnPassword makes the Node the owner of its password secret: it goes when
// the Node does.
func OwnPassword(ctx context.Context, c kubernetes.Interface, node *corev1.Node) error {
	secrets := c.CoreV1().Secrets(metav1.NamespaceSystem)
	secret, err := secrets.Get(ctx, node.Name+passwordSuffix, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || len(secret.OwnerReferences) > 0 {
		return err
	}
	logrus.Infof("Adding node OwnerReference to node-password secret %s", secret.Name)
	secret.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID,
	}}
	_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	return err
}

// The parameters of k3s's hash: $1:<salt>:<cost>:<block>:<lanes>:<key>.
const cost, block, lanes, keyLength = 15, 8, 1, 64

func hashOf(password string) (string, error) {
	salt := make([]byte, 8)
	rand.Read(salt)
	key, err := derive(password, salt)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("$1:%s:%d:%d:%d:%s", hex.EncodeToString(salt), cost, block, lanes, hex.EncodeToString(key)), nil
}

func compare(hash, password string) error {
	parts := strings.Split(hash, ":")
	if len(parts) != 6 {
		return fmt.Errorf("hash format is not known")
	}
	salt, err := hex.DecodeString(parts[1])
	if err != nil {
		return err
	}
	key, err := derive(password, salt)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(key)), []byte(parts[5])) != 1 {
		return supervisor.ErrPassword
	}
	return nil
}

func derive(password string, salt []byte) ([]byte, error) {
	return scrypt.Key([]byte(password), salt, 1<<cost, block, lanes, keyLength)
}
