{{/* Fields that Kubernetes does not change, or that the driver must keep, compared with the installed objects: otherwise the
     API server would refuse them when a part of the upgrade is done. Without a cluster, `lookup` finds nothing. */}}
{{- define "diskplugin.immutable" -}}
{{- $class := "use another name for the changed class, or replace it (docs/guides/upgrade.md#classes)" }}
{{- range $kind := list "StorageClass" "VolumeAttributesClass" "VolumeGroupSnapshotClass" }}
{{- $path := printf "%s%ses" (substr 0 1 $kind | lower) (substr 1 -1 $kind) }}
{{- $version := ternary "groupsnapshot.storage.k8s.io/v1" "storage.k8s.io/v1" (eq $kind "VolumeGroupSnapshotClass") }}
{{- if or (ne $kind "VolumeGroupSnapshotClass") (include "diskplugin.groupSnapshots" $) }}
{{- range $at, $wanted := get $.Values $path | default list }}
{{- $fields := dict "provisioner" $.Values.driverName "reclaimPolicy" (.reclaimPolicy | default "Delete") "volumeBindingMode" (.volumeBindingMode | default "WaitForFirstConsumer") }}
{{- if eq $kind "VolumeAttributesClass" }}
{{- $fields = dict "driverName" $.Values.driverName }}
{{- else if eq $kind "VolumeGroupSnapshotClass" }}
{{- $fields = dict "driver" $.Values.driverName "deletionPolicy" (.deletionPolicy | default "Delete") }}
{{- end }}
{{- $installed := lookup $version $kind "" .name }}
{{- if $installed }}
{{- $differences := list }}
{{- range $field, $value := $fields }}
{{- if ne $value (get $installed $field) }}
{{- $differences = append $differences (printf "%s is %q, and %q in the values" $field (get $installed $field) $value) }}
{{- end }}
{{- end }}
{{- $old := $installed.parameters | default dict }}
{{- $new := .parameters | default dict }}
{{- /* A VolumeGroupSnapshotClass may get its first parameters. */}}
{{- if or (ne $kind "VolumeGroupSnapshotClass") (and $old $new) }}
{{- range $key := concat (keys $old) (keys $new) | uniq | sortAlpha }}
{{- $pair := list }}
{{- range list $old $new }}
{{- $pair = append $pair (ternary (get . $key | quote) "not set" (hasKey . $key)) }}
{{- end }}
{{- if ne (first $pair) (last $pair) }}
{{- $differences = append $differences (printf "parameters.%s is %s, and %s in the values" $key (first $pair) (last $pair)) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $differences }}
{{ $kind }} {{ $wanted.name }}, {{ $path }}[{{ $at }}]: {{ . }}; Kubernetes does not change it: {{ $class }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- with lookup "storage.k8s.io/v1" "CSIDriver" "" .Values.driverName }}
{{- if or (not .spec.attachRequired) (ne (toJson .spec.volumeLifecycleModes) `["Persistent"]`) }}
CSIDriver {{ .metadata.name }}, driverName: spec.attachRequired is {{ .spec.attachRequired }} and spec.volumeLifecycleModes is {{ toJson .spec.volumeLifecycleModes }}, and the driver needs true and ["Persistent"]; Kubernetes does not change them: kubectl delete csidriver {{ .metadata.name }}
{{- end }}
{{- end }}
{{- include "diskplugin.immutableWorkloads" . }}
{{- end }}

{{/* The Deployment and the DaemonSet of this release: names, selectors, and the identity of the driver. */}}
{{- define "diskplugin.immutableWorkloads" -}}
{{- range $kind, $component := dict "Deployment" "controller" "DaemonSet" "node" }}
{{- range (lookup "apps/v1" $kind $.Release.Namespace "").items }}
{{- $labels := .metadata.labels | default dict }}
{{- $release := dig "meta.helm.sh/release-name" "" (.metadata.annotations | default dict) }}
{{- if and (eq $release $.Release.Name) (hasPrefix (printf "%s-" $.Chart.Name) (dig "helm.sh/chart" "" $labels)) }}
{{- $object := printf "%s %s" $kind .metadata.name }}
{{- $name := printf "%s-%s" (include "diskplugin.fullname" $) $component }}
{{- if ne .metadata.name $name }}
{{ $object }}: the values rename it to {{ quote $name }}, and both would run at the same time: restore nameOverride and fullnameOverride, or set fullnameOverride to {{ trimSuffix (printf "-%s" $component) .metadata.name | quote }}
{{- else }}
{{- $old := .spec.selector.matchLabels | default dict }}
{{- $new := include "diskplugin.selector" (dict "root" $ "component" $component) | fromYaml }}
{{- range $key := concat (keys $old) (keys $new) | uniq | sortAlpha }}
{{- if ne (get $old $key) (get $new $key) }}
{{ $object }}: spec.selector.matchLabels of {{ quote $key }} is {{ get $old $key | quote }}, and {{ get $new $key | quote }} in the values; Kubernetes does not change it: restore nameOverride
{{- end }}
{{- end }}
{{- end }}
{{- range .spec.template.spec.containers }}
{{- range $arg := .args }}
{{- range $flag, $value := dict "clusterId" $.Values.clusterId "driverName" $.Values.driverName }}
{{- $flag := printf "--%s=" (kebabcase $flag) }}
{{- if and (hasPrefix $flag $arg) (ne $arg (printf "%s%s" $flag $value)) }}
{{ $object }}: {{ $arg }} is installed, and the values have {{ $flag }}{{ $value }}: the driver would lose its volumes; restore the value, or delete all its volumes and snapshots before you uninstall the release
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
