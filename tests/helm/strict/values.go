package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// Values to render, and the objects that `lookup` finds.
type input struct {
	Values    map[string]any   `json:"values"`
	Installed []map[string]any `json:"installed,omitempty"`
}

// What Helm does with them: it refuses them, or renders objects, which may be wrong.
type output struct {
	Values   map[string]any   `json:"values"`
	Refused  string           `json:"refused,omitempty"`
	Problems []string         `json:"problems,omitempty"`
	Objects  []map[string]any `json:"objects,omitempty"`
}

// strict values CHART reads inputs as JSON lines, and writes the output of each. Values are merged over those of
// values/minimal.yaml. The release is x in the namespace storage of a cluster that serves snapshots.
func renderLines(path string) {
	loaded, err := loader.Load(path)
	check(err)
	file, err := os.Open(filepath.Join(path, "values/minimal.yaml"))
	check(err)
	minimal, err := loader.LoadValues(file)
	check(err)
	lines := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		var given input
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		check(json.Unmarshal(line, &given))
		result := render(loaded, loader.MergeMaps(minimal, given.Values), given.Installed)
		result.Values = given.Values
		check(out.Encode(result))
	}
}

func render(of *chart.Chart, values map[string]any, installed []map[string]any) (result output) {
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(capabilities.APIVersions, "snapshot.storage.k8s.io/v1", "groupsnapshot.storage.k8s.io/v1")
	release := common.ReleaseOptions{Name: "x", Namespace: "storage", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(of, values, release, capabilities)
	if err != nil {
		result.Refused = err.Error()
		return result
	}
	files, err := engine.Engine{CustomTemplateFuncs: map[string]any{"lookup": lookup(installed)}}.Render(of, all)
	if err != nil {
		result.Refused = err.Error()
		// Other errors of templates name no value.
		if !strings.Contains(result.Refused, "error calling fail") && !strings.Contains(result.Refused, "execution error") {
			result.Problems = append(result.Problems, result.Refused)
		}
		return result
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		objects, problems := decode([]byte(files[name]))
		result.Objects = append(result.Objects, objects...)
		for _, problem := range problems {
			result.Problems = append(result.Problems, fmt.Sprintf("%s: %v", filepath.Base(name), problem))
		}
	}
	result.Problems = append(result.Problems, lost(values, result.Objects, files)...)
	return result
}

// lookup of Helm in a cluster with these objects: one of a name, otherwise a list.
func lookup(installed []map[string]any) func(version, kind, namespace, name string) map[string]any {
	return func(version, kind, namespace, name string) map[string]any {
		items := []any{}
		for _, object := range installed {
			metadata := object["metadata"].(map[string]any)
			space, _ := metadata["namespace"].(string)
			if object["apiVersion"] != version || object["kind"] != kind || namespace != "" && space != namespace {
				continue
			}
			if metadata["name"] == name {
				return object
			}
			items = append(items, object)
		}
		if name != "" || len(items) == 0 {
			return map[string]any{}
		}
		return map[string]any{"items": items}
	}
}

// The marked texts of generated values that were rendered, but not as they are.
func lost(values any, objects []map[string]any, files map[string]string) (problems []string) {
	wanted, found := map[string]bool{}, &strings.Builder{}
	texts(values, func(text string) {
		if strings.Contains(text, mark) {
			wanted[text] = true
		}
	})
	for _, object := range objects {
		texts(object, func(text string) { found.WriteString(text + "\x00") })
	}
	for text := range wanted {
		id := text[strings.Index(text, mark):]
		for name, file := range files {
			if strings.Contains(file, id[:len(mark)+4]) && !strings.HasSuffix(name, "NOTES.txt") && !strings.Contains(found.String(), text) {
				problems = append(problems, fmt.Sprintf("%s: %q was changed", name, text))
			}
		}
	}
	return problems
}

func texts(value any, each func(string)) {
	switch value := value.(type) {
	case string:
		each(value)
	case map[string]any:
		for key, inner := range value {
			each(key)
			texts(inner, each)
		}
	case []any:
		for _, inner := range value {
			texts(inner, each)
		}
	}
}
