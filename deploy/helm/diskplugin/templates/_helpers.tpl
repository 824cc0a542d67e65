{{/* Names and what several objects have in common. */}}

{{- define "diskplugin.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "diskplugin.fullname" -}}
{{- $name := include "diskplugin.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Of what has no namespace: two releases of one name may be in two namespaces. */}}
{{- define "diskplugin.clustername" -}}
{{- printf "%s-%s" .Release.Namespace (include "diskplugin.fullname" .) }}
{{- end }}

{{/* What a selector is made of: never changed, for a Deployment's selector cannot be. */}}
{{- define "diskplugin.selector" -}}
app.kubernetes.io/name: {{ include "diskplugin.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "diskplugin.labels" -}}
{{ include "diskplugin.selector" . }}
app.kubernetes.io/part-of: {{ include "diskplugin.name" .root }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* repository@digest, else repository:tag. */}}
{{- define "diskplugin.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .fallback | required (printf "%s.tag or %s.digest must be set" .key .key) }}
{{- end -}}
{{- end }}

{{- define "diskplugin.driverImage" -}}
{{- include "diskplugin.image" (dict "image" .Values.image "fallback" .Chart.AppVersion "key" "image") }}
{{- end }}

{{- define "diskplugin.controllerAccount" -}}
{{- .Values.controller.serviceAccount.name | default (printf "%s-controller" (include "diskplugin.fullname" .)) }}
{{- end }}

{{- define "diskplugin.nodeAccount" -}}
{{- .Values.node.serviceAccount.name | default (printf "%s-node" (include "diskplugin.fullname" .)) }}
{{- end }}

{{- define "diskplugin.secret" -}}
{{- .Values.credentials.secret.name | default (printf "%s-credentials" (include "diskplugin.fullname" .)) }}
{{- end }}

{{/* What the schema cannot say: values that contradict each other. */}}
{{- define "diskplugin.checkCredentials" -}}
{{- $source := .Values.credentials.source -}}
{{- $secret := .Values.credentials.secret -}}
{{- $oidc := .Values.credentials.oidc -}}
{{- $given := or $secret.accessKeyId $secret.accessKeySecret $secret.securityToken -}}
{{- if ne $source "secret" -}}
{{- if or $given $secret.name -}}
{{- fail (printf "credentials.secret is set, and credentials.source is %s: set one of them" $source) -}}
{{- end -}}
{{- if and (eq $source "oidc") (not $oidc.roleArn) -}}
{{- fail "credentials.oidc.roleArn must be set with credentials.source oidc" -}}
{{- end -}}
{{- if and (eq $source "oidc") (not $oidc.providerArn) -}}
{{- fail "credentials.oidc.providerArn must be set with credentials.source oidc" -}}
{{- end -}}
{{- else if and $secret.name $given -}}
{{- fail "credentials.secret has a name and a key: set the name of a Secret that is there, or the key of one that is made" -}}
{{- else if not (or $secret.name $secret.accessKeyId) -}}
{{- fail "credentials.secret.name must be set to a Secret with access-key-id and access-key-secret; or credentials.secret.accessKeyId; or another credentials.source" -}}
{{- else if not (or $secret.name $secret.accessKeySecret) -}}
{{- fail "credentials.secret.accessKeySecret must be set with credentials.secret.accessKeyId" -}}
{{- end -}}
{{- end }}

{{/* "true" or nothing. */}}
{{- define "diskplugin.snapshots" -}}
{{- $mode := .Values.snapshots.mode -}}
{{- if or (eq $mode "enabled") (and (eq $mode "auto") (.Capabilities.APIVersions.Has "snapshot.storage.k8s.io/v1")) -}}
true
{{- end -}}
{{- end }}

{{- define "diskplugin.groups" -}}
{{- $mode := .Values.snapshots.groups -}}
{{- if include "diskplugin.snapshots" . -}}
{{- if or (eq $mode "enabled") (and (eq $mode "auto") (.Capabilities.APIVersions.Has "groupsnapshot.storage.k8s.io/v1")) -}}
true
{{- end -}}
{{- else if eq $mode "enabled" -}}
{{- fail "snapshots.groups is enabled, and snapshots.mode is not: group snapshots need snapshots" -}}
{{- end -}}
{{- end }}

{{/* The ConfigMap of what instance types take: made by the values, or kept by the controller. */}}
{{- define "diskplugin.typesMap" -}}
{{ include "diskplugin.fullname" . }}-instance-types
{{- end }}

{{/* "true" where the controller keeps it. */}}
{{- define "diskplugin.publishes" -}}
{{- if and .Values.instanceTypes.publish (not .Values.node.instanceTypes) -}}
true
{{- end -}}
{{- end }}

{{/* "true" where nodes are told what instance types take. */}}
{{- define "diskplugin.types" -}}
{{- if or .Values.node.instanceTypes .Values.instanceTypes.publish -}}
true
{{- end -}}
{{- end }}

{{/* The key of the taint that the controller takes off. */}}
{{- define "diskplugin.startupTaint" -}}
{{ .Values.startupTaint.key | default (printf "%s/agent-not-ready" .Values.driverName) }}
{{- end }}

{{/* "true" where the driver itself calls the API server, and so needs the token. */}}
{{- define "diskplugin.callsApi" -}}
{{- if or (include "diskplugin.publishes" .) .Values.events.enabled .Values.startupTaint.enabled -}}
true
{{- end -}}
{{- end }}

{{/* Of every container: what it said last, such as why it does not start, is what `kubectl describe pod` shows of its end. */}}
{{- define "diskplugin.lastWords" -}}
terminationMessagePolicy: FallbackToLogsOnError
{{- end }}

{{/* Of a container that needs nothing of the machine. */}}
{{- define "diskplugin.unprivileged" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* A sidecar of the controller: root, key, binary, args. */}}
{{- define "diskplugin.sidecar" -}}
{{- $values := index .root.Values.sidecars .key -}}
{{- $gates := list -}}
{{- range $name, $on := merge (.gates | default dict) $values.featureGates }}
{{- $gates = append $gates (printf "%s=%t" $name $on) }}
{{- end -}}
- name: {{ .binary }}
  image: {{ include "diskplugin.image" (dict "image" $values.image "fallback" "" "key" (printf "sidecars.%s.image" .key)) }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args:
    - --csi-address=/csi/csi.sock
    - --leader-election=true
    - --leader-election-namespace={{ .root.Release.Namespace }}
    - --http-endpoint=:{{ $values.httpPort }}
    - --timeout=150s
    # At 5 a second, which is the default, a hundred workers wait for each other; the API server sees to itself.
    - --kube-api-qps=50
    - --kube-api-burst=100
    {{- range .args }}
    - {{ . }}
    {{- end }}
    {{- with $gates }}
    - --feature-gates={{ join "," . }}
    {{- end }}
    {{- range $values.extraArgs }}
    - {{ . | quote }}
    {{- end }}
  {{- with .env }}
  env:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - name: {{ .key }}
      containerPort: {{ $values.httpPort }}
  # Also of one that waits to become the leader; it fails where a leader cannot renew its lease.
  livenessProbe:
    httpGet:
      path: /healthz/leader-election
      port: {{ .key }}
    initialDelaySeconds: 10
    periodSeconds: 20
    timeoutSeconds: 10
  {{- include "diskplugin.lastWords" . | nindent 2 }}
  securityContext:
    {{- include "diskplugin.unprivileged" . | nindent 4 }}
  resources:
    {{- toYaml $values.resources | nindent 4 }}
  volumeMounts:
    - name: socket
      mountPath: /csi
    - name: api
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
{{- end }}

{{/* The securityContext of a sidecar of the node: its socket belongs to root, and nothing else does it need. */}}
{{- define "diskplugin.unprivilegedRoot" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsUser: 0
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* The livenessprobe of upstream: root, dir and volume of the socket, security. */}}
{{- define "diskplugin.livenessContainer" -}}
{{- $values := .root.Values.sidecars.livenessProbe -}}
- name: liveness-probe
  image: {{ include "diskplugin.image" (dict "image" $values.image "fallback" "" "key" "sidecars.livenessProbe.image") }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args:
    - --csi-address=/csi/csi.sock
    - --http-endpoint=:{{ $values.httpPort }}
    - --probe-timeout=5s
    {{- range $values.extraArgs }}
    - {{ . | quote }}
    {{- end }}
  {{- include "diskplugin.lastWords" . | nindent 2 }}
  securityContext:
    {{- include .security . | nindent 4 }}
  resources:
    {{- toYaml $values.resources | nindent 4 }}
  volumeMounts:
    - name: socket
      mountPath: /csi
{{- end }}

{{/* The ports of the driver's container, and its probes: root, port. */}}
{{- define "diskplugin.probes" -}}
ports:
  - name: health
    containerPort: {{ .port }}
  {{- if .root.Values.sidecars.livenessProbe.enabled }}
  # Served by the sidecar.
  - name: livez
    containerPort: {{ .root.Values.sidecars.livenessProbe.httpPort }}
  {{- end }}
livenessProbe:
  httpGet:
    path: /healthz
    port: {{ ternary "livez" "health" .root.Values.sidecars.livenessProbe.enabled }}
  initialDelaySeconds: 10
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 5
readinessProbe:
  httpGet:
    path: /readyz
    port: health
  periodSeconds: 10
  timeoutSeconds: 5
{{- end }}

{{- define "diskplugin.env" -}}
- name: RUST_LOG
  value: {{ .root.Values.logLevel | quote }}
{{- with .env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What both roles are told of where they are. */}}
{{- define "diskplugin.whereArgs" -}}
- --driver-name={{ .Values.driverName }}
- --log-format={{ .Values.logFormat }}
{{- with .Values.region }}
- --region={{ . }}
{{- end }}
{{- with .Values.metadata.endpoint }}
- --metadata-endpoint={{ . }}
{{- end }}
{{- if .Values.metadata.tokenOnly }}
- --metadata-token-only
{{- end }}
{{- end }}
