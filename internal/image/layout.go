package image

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Layout writes images as one OCI image layout in a tar archive, as containerd
// imports it (containerd client.Import; io.containerd.image.name is its
// annotation for a name). What two images share is there once. The same images
// make the same bytes. blob writes the content of a checksum.
func Layout(w io.Writer, images []Pulled, blob func(sum string, w io.Writer) error) error {
	index, err := json.Marshal(layoutIndex(images))
	if err != nil {
		return fmt.Errorf("writing images: %w", err)
	}
	t := tar.NewWriter(w)
	small := func(name string, data []byte) error {
		if err := t.WriteHeader(member(name, int64(len(data)))); err != nil {
			return err
		}
		_, err := t.Write(data)
		return err
	}
	if err := small("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return fmt.Errorf("writing images: %w", err)
	}
	if err := small("index.json", index); err != nil {
		return fmt.Errorf("writing images: %w", err)
	}
	written := map[string]bool{}
	for _, i := range images {
		for _, b := range i.Blobs {
			if written[b.SHA256] {
				continue
			}
			written[b.SHA256] = true
			if err := t.WriteHeader(member("blobs/sha256/"+b.SHA256, b.Size)); err != nil {
				return fmt.Errorf("writing images: %w", err)
			}
			if err := blob(b.SHA256, t); err != nil {
				return fmt.Errorf("writing images: %s: %w", b.SHA256, err)
			}
		}
	}
	if err := t.Close(); err != nil {
		return fmt.Errorf("writing images: %w", err)
	}
	return nil
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations"`
}

func layoutIndex(images []Pulled) any {
	out := struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}{2, "application/vnd.oci.image.index.v1+json", []descriptor{}}
	for _, i := range images {
		for _, n := range i.Names {
			out.Manifests = append(out.Manifests, descriptor{i.MediaType, "sha256:" + i.SHA256, i.Size, map[string]string{
				"io.containerd.image.name": n, "org.opencontainers.image.ref.name": n,
			}})
		}
	}
	return out
}

func member(name string, size int64) *tar.Header {
	return &tar.Header{Name: name, Mode: 0o644, Size: size, Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0).UTC(), Format: tar.FormatPAX}
}
