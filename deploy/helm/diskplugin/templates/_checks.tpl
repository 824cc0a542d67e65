{{/* What the schema cannot express. All problems are reported together, before anything is changed. */}}
{{- define "diskplugin.check" -}}
{{- include "diskplugin.checkCredentials" . }}
{{- include "diskplugin.checkMonitoring" . }}
{{- $found := list }}
{{- range $check := list "ownedKeys" "duplicates" "conflicts" "immutable" }}
{{- $found = append $found (include (printf "diskplugin.%s" $check) $) }}
{{- end }}
{{- with join "\n" $found | splitList "\n" | compact }}
{{- fail (join "\n" .) }}
{{- end }}
{{- end }}

{{/* Keys of labels and annotations that the chart or Helm sets. */}}
{{- define "diskplugin.ownedKeys" -}}
{{- $labels := dict
  "commonLabels" .Values.commonLabels
  "controller.podLabels" .Values.controller.podLabels
  "node.podLabels" .Values.node.podLabels
  "monitoring.podMonitor.labels" .Values.monitoring.podMonitor.labels
  "monitoring.prometheusRule.labels" .Values.monitoring.prometheusRule.labels
  "monitoring.dashboards.labels" .Values.monitoring.dashboards.labels }}
{{- $annotations := dict
  "controller.podAnnotations" .Values.controller.podAnnotations
  "controller.serviceAccount.annotations" .Values.controller.serviceAccount.annotations
  "node.podAnnotations" .Values.node.podAnnotations
  "node.serviceAccount.annotations" .Values.node.serviceAccount.annotations
  "monitoring.dashboards.annotations" .Values.monitoring.dashboards.annotations }}
{{- range $kind := list "storageClasses" "volumeSnapshotClasses" "volumeGroupSnapshotClasses" "volumeAttributesClasses" }}
{{- range $at, $class := get $.Values $kind | default list }}
{{- $path := printf "%s[%d]" $kind $at }}
{{- $_ := set $annotations (printf "%s.annotations" $path) $class.annotations }}
{{- range $key, $_ := $class.annotations }}
{{- if hasSuffix "/is-default-class" $key }}
{{ $path }}.annotations: {{ quote $key }} is a key of the chart: remove it, and set {{ $path }}.default
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $path, $map := $labels }}
{{- range $key, $_ := $map }}
{{- if regexMatch "^(app[.]kubernetes[.]io/(name|instance|component|managed-by|version)|helm[.]sh/.*)$" $key }}
{{ $path }}: {{ quote $key }} is a key of the chart: remove it
{{- end }}
{{- end }}
{{- end }}
{{- range $path, $map := $annotations }}
{{- range $key, $_ := $map }}
{{- if regexMatch "^(helm[.]sh/hook|meta[.]helm[.]sh/)" $key }}
{{ $path }}: {{ quote $key }} is a key of Helm: remove it
{{- end }}
{{- end }}
{{- end }}
{{- $os := dig "kubernetes.io/os" "linux" (.Values.node.nodeSelector | default dict) }}
{{- if ne $os "linux" }}
node.nodeSelector: "kubernetes.io/os" is {{ quote $os }}; allowed: linux
{{- end }}
{{- if hasKey (.Values.sidecars.snapshotter.featureGates | default dict) "CSIVolumeGroupSnapshot" }}
sidecars.snapshotter.featureGates: "CSIVolumeGroupSnapshot" is a key of the chart: remove it, and set snapshots.groups
{{- end }}
{{- end }}

{{/* Elements of a list with the same name, and ports of a pod that are used twice. */}}
{{- define "diskplugin.duplicates" -}}
{{- range $path := list "storageClasses" "volumeSnapshotClasses" "volumeGroupSnapshotClasses" "volumeAttributesClasses" }}
{{- $seen := dict }}
{{- range get $.Values $path | default list }}
{{- if hasKey $seen .name }}
{{ $path }}: the name {{ quote .name }} is used twice: remove one
{{- end }}
{{- $_ := set $seen .name true }}
{{- end }}
{{- end }}
{{- $controller := list (list "controller.healthPort" .Values.controller.healthPort) }}
{{- range $sidecar := list "provisioner" "attacher" "resizer" "snapshotter" }}
{{- $controller = append $controller (list (printf "sidecars.%s.httpPort" $sidecar) (get $.Values.sidecars $sidecar).httpPort) }}
{{- end }}
{{- $node := list (list "node.healthPort" .Values.node.healthPort) }}
{{- if .Values.sidecars.livenessProbe.enabled }}
{{- $node = append $node (list "sidecars.livenessProbe.httpPort" .Values.sidecars.livenessProbe.httpPort) }}
{{- end }}
{{- range ternary (list (concat $node $controller)) (list $node $controller) (and .Values.controller.hostNetwork .Values.node.hostNetwork) }}
{{- $seen := dict }}
{{- range . }}
{{- $port := last . | toString }}
{{- if hasKey $seen $port }}
{{ first . }}: the port {{ $port }} is also {{ get $seen $port }}: set another
{{- end }}
{{- $_ := set $seen $port (first .) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Values that the driver refuses, or that have no effect. */}}
{{- define "diskplugin.conflicts" -}}
{{- range $role := list "controller" "node" }}
{{- $names := list }}
{{- range concat (include (printf "diskplugin.%sArgs" $role) $ | fromYamlArray) ((get $.Values $role).extraArgs | default list) }}
{{- $name := splitList "=" . | first }}
{{- if and (has $name $names) (ne $name "--rate-limits") }}
{{ $role }}.extraArgs: {{ $name }} is set twice, or by the chart: remove it
{{- end }}
{{- $names = append $names $name }}
{{- end }}
{{- end }}
{{- with .Values.node.toolMemory }}
{{- $unit := regexFind "[KMG]i$" . }}
{{- if lt (mul (regexFind "[1-9][0-9]*" . | default "0" | int64) (get (dict "" 1 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824) $unit)) 16777216 }}
node.toolMemory is {{ quote . }}; allowed: at least 16Mi
{{- end }}
{{- end }}
{{- if and .Values.controller.fencing.enabled (not .Values.events.enabled) }}
controller.fencing.enabled requires events.enabled: the reason of each fenced node is an event
{{- end }}
{{- if and .Values.credentials.assumeRole.externalId (not .Values.credentials.assumeRole.arn) }}
credentials.assumeRole.arn must be set with credentials.assumeRole.externalId
{{- end }}
{{- end }}
