package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// In texts without a pattern: the mark and four digits, so that a render that changes a text is found.
const mark = "mark"

// Texts that YAML reads as something else unless they are quoted.
var awkward = []string{"", "true", "123", "1e3", "~", "a: %s", "a #%s", "'%s", "\"%s\"", "*%s", "&%s", "- %s", "{{%s}}", "%s\nb", "%s é", "\\%s"}

// Labels and annotations that the chart or Helm sets.
var owned = []string{"app.kubernetes.io/name", "app.kubernetes.io/part-of", "app.kubernetes.io/managed-by", "helm.sh/chart",
	"kubernetes.io/os", "kubectl.kubernetes.io/default-container", "storageclass.kubernetes.io/is-default-class"}

// Valid objects for values whose fields only Kubernetes knows, by key.
var open = map[string]string{
	"nodeAffinity":      `{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}`,
	"podAffinity":       `{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a"}]}`,
	"podAntiAffinity":   `{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a"}]}`,
	"allowedTopologies": `{"matchLabelExpressions":[{"key":"a","values":["b"]}]}`,
	"metricsFrom":       `{"namespaceSelector":{}}`,
	"extraEgress":       `{"ports":[{"port":1}]}`,
	"authorization":     `{"credentials":{"name":"a","key":"b"}}`,
	"tlsConfig":         `{"serverName":"a"}`,
	"extraVolumes":      `{"name":"more","emptyDir":{}}`,
	"extraVolumeMounts": `{"name":"more","mountPath":"/more"}`,
	"global":            `{"any":1}`,
}

type generator struct {
	*rand.Rand
	definitions map[string]any
}

// strict generate CHART SEED COUNT writes inputs of `strict values`: values that the schema of the chart describes.
func generateLines(path, seed, count string) {
	text, err := os.ReadFile(filepath.Join(path, "values.schema.json"))
	check(err)
	var schema map[string]any
	check(json.Unmarshal(text, &schema))
	start, err := strconv.ParseInt(seed, 10, 64)
	check(err)
	number, err := strconv.Atoi(count)
	check(err)
	definitions, _ := schema["definitions"].(map[string]any)
	out := json.NewEncoder(os.Stdout)
	for i := range number {
		g := generator{rand.New(rand.NewSource(start + int64(i))), definitions}
		check(out.Encode(input{Values: g.object(schema, 0.2)}))
	}
}

func (g generator) value(rule map[string]any, key string) any {
	if ref, ok := rule["$ref"].(string); ok {
		return g.value(g.definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any), key)
	}
	if value, ok := rule["const"]; ok {
		return value
	}
	for _, name := range []string{"enum", "oneOf", "anyOf"} {
		choice, ok := rule[name].([]any)
		if !ok || rule["properties"] != nil {
			continue
		}
		one := choice[g.Intn(len(choice))]
		if name == "enum" {
			return one
		}
		merged := map[string]any{}
		for _, from := range []map[string]any{rule, one.(map[string]any)} {
			for key, value := range from {
				merged[key] = value
			}
		}
		delete(merged, name)
		return g.value(merged, key)
	}
	kind := rule["type"]
	if kinds, ok := kind.([]any); ok {
		kind = kinds[g.Intn(len(kinds))]
	}
	switch kind {
	case "boolean":
		return g.Intn(2) == 0
	case "integer", "number":
		low, high := bound(rule, "minimum", 0), bound(rule, "maximum", 100)
		if kind == "integer" {
			return int64(low) + g.Int63n(int64(high-low)+1)
		}
		return low + g.Float64()*(high-low)
	case "array":
		list := []any{}
		items := rule["items"].(map[string]any)
		if _, ok := open[key]; ok {
			items = map[string]any{"type": "object"}
		}
		for range g.Intn(3) {
			list = append(list, g.value(items, key))
		}
		return list
	case "object":
		return g.object(rule, 0.5, key)
	default:
		return g.text(rule)
	}
}

func bound(rule map[string]any, name string, other float64) float64 {
	if value, ok := rule[name].(float64); ok {
		return value
	}
	return other
}

// An object with a part of the properties, and with some more keys if it is a map.
func (g generator) object(rule map[string]any, part float64, key ...string) map[string]any {
	object := map[string]any{}
	properties, _ := rule["properties"].(map[string]any)
	required := fmt.Sprint(rule["required"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if name == "extraArgs" {
			continue // The schema knows the names of flags, but not the format of each.
		}
		if g.Float64() < part || strings.Contains(required, name) {
			object[name] = g.value(properties[name].(map[string]any), name)
			_, isList := object[name].([]any)
			if g.Intn(10) == 0 && (isList || name == "affinity" || strings.HasSuffix(strings.ToLower(name), "labels")) {
				object[name] = nil // Removes the default.
			}
		}
	}
	more, isMap := rule["additionalProperties"].(map[string]any)
	patterns, _ := rule["patternProperties"].(map[string]any)
	if properties == nil && !isMap && patterns == nil {
		example, ok := open[key[0]]
		if !ok {
			check(fmt.Errorf("generate.go has no example of %v", key))
		}
		check(json.Unmarshal([]byte(example), &object))
		return object
	}
	if isMap {
		for range g.Intn(3) {
			names, _ := rule["propertyNames"].(map[string]any)
			name, _ := g.value(names, "").(string)
			object[name] = g.value(more, name)
		}
	}
	sorted := slices.Sorted(maps.Keys(patterns))
	for range min(g.Intn(3), 2*len(sorted)) {
		pattern := sorted[g.Intn(len(sorted))]
		inner, ok := patterns[pattern].(map[string]any)
		if !ok {
			continue // No key may match it.
		}
		name := g.match(pattern)
		if strings.HasPrefix(pattern, "^(") && strings.Contains(pattern, "/)?") && g.Intn(5) == 0 {
			name = owned[g.Intn(len(owned))]
		}
		object[name] = g.value(inner, name)
	}
	return object
}

func (g generator) text(rule map[string]any) string {
	pattern, ok := rule["pattern"].(string)
	if !ok {
		text := strings.ReplaceAll(awkward[g.Intn(len(awkward))], "%s", fmt.Sprintf("%s%04d", mark, g.Intn(10000)))
		if text == "" && rule["minLength"] != nil {
			return "0"
		}
		return text
	}
	for {
		text := g.match(pattern)
		not, _ := rule["not"].(map[string]any)
		unwanted, _ := not["pattern"].(string)
		isLong := len(text) > int(bound(rule, "maxLength", 1000))
		if !isLong && text != not["const"] && (unwanted == "" || !regexp.MustCompile(unwanted).MatchString(text)) {
			return text
		}
	}
}

// A text that matches a pattern, short or long.
func (g generator) match(pattern string) string {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	check(err)
	again := []float64{0.3, 0.6, 0.95}[g.Intn(3)]
	var out strings.Builder
	var walk func(*syntax.Regexp)
	walk = func(at *syntax.Regexp) {
		switch at.Op {
		case syntax.OpLiteral:
			out.WriteString(string(at.Rune))
		case syntax.OpCharClass:
			ranges := at.Rune
			pair := g.Intn(len(ranges)/2) * 2
			high := min(ranges[pair+1], ranges[pair]+100)
			out.WriteRune(ranges[pair] + rune(g.Intn(int(high-ranges[pair])+1)))
		case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
			out.WriteByte("a0-/ #"[g.Intn(6)])
		case syntax.OpAlternate:
			walk(at.Sub[g.Intn(len(at.Sub))])
		case syntax.OpConcat, syntax.OpCapture:
			for _, sub := range at.Sub {
				walk(sub)
			}
		case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
			low, high := map[syntax.Op]int{syntax.OpPlus: 1, syntax.OpRepeat: at.Min}[at.Op], 9
			if at.Op == syntax.OpQuest {
				high = 1
			} else if at.Op == syntax.OpRepeat && at.Max >= 0 {
				high = at.Max
			}
			for n := 0; n < high && (n < low || g.Float64() < again); n++ {
				walk(at.Sub[0])
			}
		}
	}
	walk(tree)
	return out.String()
}
