package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/cluster"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/token"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tokenCommand is `k3s token create|list|delete|generate`.
func tokenCommand(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("the lab's stand-in knows k3s token create, list, delete and generate")
	}
	if args[0] == "generate" {
		fmt.Println(token.NewBootstrap())
		return nil
	}
	flags := flag.NewFlagSet("token "+args[0], flag.ContinueOnError)
	ttl := flags.Duration("ttl", 24*time.Hour, "")
	description := flags.String("description", "", "")
	data := flags.String("data-dir", layout.DefaultDataDir, "")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	client, err := cluster.Connect(layout.Data(*data).Cred("admin.kubeconfig"))
	if err != nil {
		return err
	}
	secrets := client.CoreV1().Secrets(metav1.NamespaceSystem)
	switch args[0] {
	case "create":
		text := token.NewBootstrap()
		if flags.NArg() > 0 {
			text = flags.Arg(0)
		}
		if _, err := secrets.Create(ctx, bootstrapSecret(text, *description, *ttl), metav1.CreateOptions{}); err != nil {
			return err
		}
		ca, err := os.ReadFile(layout.Data(*data).TLS("server-ca.crt"))
		if err != nil {
			return err
		}
		fmt.Println(token.FormatBootstrap(ca, text))
		return nil
	case "delete":
		for _, id := range flags.Args() {
			if err := secrets.Delete(ctx, "bootstrap-token-"+id[:min(6, len(id))], metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
		return nil
	case "list":
		list, err := secrets.List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeBootstrapToken)})
		if err != nil {
			return err
		}
		fmt.Println("TOKEN   TTL   EXPIRES   USAGES   DESCRIPTION   EXTRA GROUPS")
		for _, s := range list.Items {
			d := s.Data
			fmt.Printf("%s   %s   authentication,signing   %s   %s\n", d["token-id"], d["expiration"], d["description"], d["auth-extra-groups"])
		}
		return nil
	}
	return fmt.Errorf("the lab's stand-in does not imitate k3s token %s", args[0])
}

func bootstrapSecret(text, description string, ttl time.Duration) *corev1.Secret {
	values := map[string]string{
		"token-id": text[:6], "token-secret": text[7:], "description": description,
		"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
		"auth-extra-groups": "system:bootstrappers:k3s:default-node-token",
	}
	if ttl > 0 {
		values["expiration"] = time.Now().Add(ttl).UTC().Format(time.RFC3339)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + text[:6], Namespace: metav1.NamespaceSystem},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: values,
	}
}
