// Strict decodes every object of the manifests into its API type, including those of snapshots and of the Prometheus
// Operator. Unknown kinds, versions and fields, wrong types and duplicate keys are errors. Values are not validated.
//
//	strict FILE...
//
// It also renders values, and generates them; see values.go and generate.go.
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
		check(add(scheme.Scheme))
	}
	if len(os.Args) == 3 && os.Args[1] == "values" {
		renderLines(os.Args[2])
		return
	}
	if len(os.Args) == 5 && os.Args[1] == "generate" {
		generateLines(os.Args[2], os.Args[3], os.Args[4])
		return
	}
	known, bad := 0, 0
	for _, name := range os.Args[1:] {
		text, err := os.ReadFile(name)
		check(err)
		objects, problems := decode(text)
		for _, problem := range problems {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, problem)
		}
		known, bad = known+len(objects), bad+len(problems)
	}
	fmt.Printf("%d objects are valid, %d are not\n", known, bad)
	if bad > 0 || known == 0 {
		os.Exit(1)
	}
}

var codec = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict)

// The objects of a stream of YAML documents, and the problems of the others.
func decode(text []byte) (objects []map[string]any, problems []error) {
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, problems
		}
		var kind metav1.TypeMeta
		if err == nil {
			err = strictyaml.Unmarshal(document, &kind)
		}
		if err == nil && kind.Kind == "" {
			continue // Comments only.
		}
		object := map[string]any{}
		if err == nil {
			_, _, err = codec.UniversalDeserializer().Decode(document, nil, nil)
		}
		if err == nil {
			err = strictyaml.UnmarshalStrict(document, &object)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", kind.Kind, err))
			continue
		}
		objects = append(objects, object)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
