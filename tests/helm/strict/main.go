// Strict decodes every object of the manifests into its API type, including those of snapshots and of the Prometheus
// Operator. Unknown kinds, versions and fields, wrong types and duplicate fields are errors. Values are not validated.
//
//	strict FILE...
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	groupsnapshot "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshot "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	strictyaml "sigs.k8s.io/yaml"
)

func main() {
	for _, add := range []func(*runtime.Scheme) error{snapshot.AddToScheme, groupsnapshot.AddToScheme, monitoring.AddToScheme} {
		if err := add(scheme.Scheme); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	decode := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer().Decode
	known, bad := 0, 0
	for _, name := range os.Args[1:] {
		text, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			var kind metav1.TypeMeta
			if err == nil {
				err = strictyaml.Unmarshal(document, &kind)
			}
			if err == nil && kind.Kind == "" {
				continue // Comments only.
			}
			if err == nil {
				_, _, err = decode(document, nil, nil)
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s: %s: %v\n", name, kind.Kind, err)
				bad++
				continue
			}
			known++
		}
	}
	fmt.Printf("%d objects are valid, %d are not\n", known, bad)
	if bad > 0 || known == 0 {
		os.Exit(1)
	}
}
