{{/* Names and parts that several objects share. */}}

{{- define "diskplugin.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimAll "-" }}
{{- end }}

{{- define "diskplugin.fullname" -}}
{{- $name := include "diskplugin.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimAll "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimAll "-." }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimAll "-." }}
{{- end }}
{{- end }}

{{/* For cluster-scoped objects: two namespaces can have releases of the same name. */}}
{{- define "diskplugin.clustername" -}}
{{- printf "%s-%s" .Release.Namespace (include "diskplugin.fullname" .) }}
{{- end }}

{{/* Selector labels. A Deployment's selector is immutable, so they must never change. */}}
{{- define "diskplugin.selector" -}}
{{- toYaml (dict "app.kubernetes.io/name" (include "diskplugin.name" .root) "app.kubernetes.io/instance" .root.Release.Name "app.kubernetes.io/component" .component) }}
{{- end }}

{{/* Labels of an object: root, component, and `more` labels of the user. Only `part-of` can be replaced (diskplugin.check). */}}
{{- define "diskplugin.labels" -}}
{{- $replaceable := dict "app.kubernetes.io/part-of" (include "diskplugin.name" .root) }}
{{- $own := include "diskplugin.selector" . | fromYaml }}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service }}
{{- $_ := set $own "app.kubernetes.io/version" .root.Chart.AppVersion }}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") }}
{{- toYaml (mergeOverwrite $replaceable (.root.Values.commonLabels | default dict) (.more | default dict) $own) }}
{{- end }}

{{/* Image reference by digest, otherwise by tag: root, image, fallback (tag), key. `imageRegistry` replaces all but the last component. */}}
{{- define "diskplugin.image" -}}
{{- $repository := .repository | default .image.repository -}}
{{- with .root.Values.imageRegistry -}}
{{- $repository = printf "%s/%s" . (base $repository) -}}
{{- end -}}
{{- if .image.digest -}}
{{ $repository }}@{{ .image.digest }}
{{- else -}}
{{ $repository }}:{{ .image.tag | default .fallback | required (printf "%s.tag or %s.digest must be set" .key .key) }}
{{- end -}}
{{- end }}

{{- define "diskplugin.driverImage" -}}
{{- $repository := .Values.image.repository | default (ternary "diskplugin" "" (ne .Values.imageRegistry "")) | required "imageRegistry or image.repository must be set: no image of the driver is published" -}}
{{- include "diskplugin.image" (dict "root" . "image" .Values.image "repository" $repository "fallback" .Chart.AppVersion "key" "image") }}
{{- end }}

{{/* Affinity of the node plugin: the operator's, with the excluded nodes in each required term, of which one must match. */}}
{{- define "diskplugin.nodeAffinity" -}}
{{- $excluded := list }}
{{- range $label, $values := .Values.node.excludedNodeLabels }}
{{- if $values }}
{{- $excluded = append $excluded (dict "key" $label "operator" "NotIn" "values" $values) }}
{{- else }}
{{- $excluded = append $excluded (dict "key" $label "operator" "DoesNotExist") }}
{{- end }}
{{- end }}
{{- $affinity := deepCopy (.Values.node.affinity | default dict) }}
{{- if $excluded }}
{{- $node := $affinity.nodeAffinity | default dict }}
{{- $required := $node.requiredDuringSchedulingIgnoredDuringExecution | default dict }}
{{- $terms := list }}
{{- range $required.nodeSelectorTerms | default (list dict) }}
{{- $terms = append $terms (set . "matchExpressions" (concat (.matchExpressions | default list) $excluded)) }}
{{- end }}
{{- $_ := set $node "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) }}
{{- $_ := set $affinity "nodeAffinity" $node }}
{{- end }}
{{- with $affinity }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* "true" if the preStop hook of the node plugin waits for the detach of volumes. node-driver-registrar has no such hook: it
     ends at once, and kubelet can no longer call the driver. */}}
{{- define "diskplugin.waitsForVolumeDetach" -}}
{{- if and .Values.node.waitForVolumeDetach.enabled (not .Values.sidecars.registrar.enabled) -}}
true
{{- end -}}
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

{{/* Conflicts between values, which the schema cannot express. */}}
{{- define "diskplugin.checkCredentials" -}}
{{- $source := .Values.credentials.source -}}
{{- $secret := .Values.credentials.secret -}}
{{- $oidc := .Values.credentials.oidc -}}
{{- $given := or $secret.accessKeyId $secret.accessKeySecret $secret.securityToken -}}
{{- if ne $source "secret" -}}
{{- if or $given $secret.name -}}
{{- fail (printf "credentials.secret is set, but credentials.source is %s: remove one of them" $source) -}}
{{- end -}}
{{- if and (eq $source "oidc") (not $oidc.roleArn) -}}
{{- fail "credentials.oidc.roleArn must be set with credentials.source oidc" -}}
{{- end -}}
{{- if and (eq $source "oidc") (not $oidc.providerArn) -}}
{{- fail "credentials.oidc.providerArn must be set with credentials.source oidc" -}}
{{- end -}}
{{- else if and $secret.name $given -}}
{{- fail "credentials.secret has both a name and a key: set the name of an existing Secret, or the key for a Secret that the chart creates" -}}
{{- else if not (or $secret.name $secret.accessKeyId) -}}
{{- fail "credentials.secret.name must be set to a Secret with the keys access-key-id and access-key-secret; otherwise set credentials.secret.accessKeyId or another credentials.source" -}}
{{- else if not (or $secret.name $secret.accessKeySecret) -}}
{{- fail "credentials.secret.accessKeySecret must be set with credentials.secret.accessKeyId" -}}
{{- end -}}
{{- /* As the driver reads them. The schema would print the value. */}}
{{- range $key, $punctuation := dict "accessKeyId" "-_." "accessKeySecret" "-_.+/=" "securityToken" "-_.+/=" -}}
{{- if not (regexMatch (printf "^[\\s\\pZ\\x{FEFF}]*[A-Za-z0-9%s]*[\\s\\pZ\\x{FEFF}]*$" $punctuation) (index $secret $key)) -}}
{{- fail (printf "credentials.secret.%s has a character that no key has; allowed are ASCII letters, digits and %s" $key $punctuation) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* "true" if snapshots are enabled, otherwise empty. */}}
{{- define "diskplugin.snapshots" -}}
{{- $mode := .Values.snapshots.mode -}}
{{- if or (eq $mode "enabled") (and (eq $mode "auto") (.Capabilities.APIVersions.Has "snapshot.storage.k8s.io/v1")) -}}
true
{{- end -}}
{{- end }}

{{- define "diskplugin.groupSnapshots" -}}
{{- $mode := .Values.snapshots.groups -}}
{{- if include "diskplugin.snapshots" . -}}
{{- if or (eq $mode "enabled") (and (eq $mode "auto") (.Capabilities.APIVersions.Has "groupsnapshot.storage.k8s.io/v1")) -}}
true
{{- end -}}
{{- else if eq $mode "enabled" -}}
{{- fail "snapshots.groups is enabled, but snapshots are not: group snapshots require snapshots.mode" -}}
{{- end -}}
{{- end }}

{{/* The ConfigMap of attach limits by instance type: filled from the values, or by the controller. */}}
{{- define "diskplugin.instanceTypesConfigMap" -}}
{{ include "diskplugin.fullname" . }}-instance-types
{{- end }}

{{/* "true" if the controller fills it. */}}
{{- define "diskplugin.publishesInstanceTypes" -}}
{{- if and .Values.instanceTypes.publish (not .Values.node.instanceTypes) -}}
true
{{- end -}}
{{- end }}

{{/* "true" if nodes mount it. */}}
{{- define "diskplugin.mountsInstanceTypes" -}}
{{- if or .Values.node.instanceTypes .Values.instanceTypes.publish -}}
true
{{- end -}}
{{- end }}

{{/* The key of the taint that the controller removes. */}}
{{- define "diskplugin.startupTaint" -}}
{{ .Values.startupTaint.key | default (printf "%s/agent-not-ready" .Values.driverName) }}
{{- end }}

{{/* "true" if the driver itself calls the API server and needs a token. */}}
{{- define "diskplugin.callsApiServer" -}}
{{- if or (include "diskplugin.publishesInstanceTypes" .) .Values.events.enabled .Values.startupTaint.enabled -}}
true
{{- end -}}
{{- end }}

{{/* Name of the Lease of the controller, which the driver derives from its name. */}}
{{- define "diskplugin.lease" -}}
{{ .Values.driverName | replace "." "-" }}-controller
{{- end }}

{{/* Conflicts between values of monitoring. */}}
{{- define "diskplugin.checkMonitoring" -}}
{{- $monitor := .Values.monitoring.podMonitor -}}
{{- if $monitor.enabled -}}
{{- if and .Values.http.tls.secretName (not $monitor.tlsConfig) -}}
{{- fail "monitoring.podMonitor.tlsConfig must be set with http.tls.secretName: ca and serverName of the certificate, or insecureSkipVerify" -}}
{{- end -}}
{{- if and (eq .Values.http.authorization "token-review") (not $monitor.authorization) -}}
{{- fail "monitoring.podMonitor.authorization must be set with http.authorization token-review: credentials with name and key of a Secret with a token" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Mount and volume of the certificate of the HTTP port: root. */}}
{{- define "diskplugin.tlsMount" -}}
{{- if .Values.http.tls.secretName }}
- name: tls
  mountPath: /etc/diskplugin-tls
  readOnly: true
{{- end }}
{{- end }}

{{- define "diskplugin.tlsVolume" -}}
{{- with .Values.http.tls.secretName }}
# The certificate of the HTTP port. A directory without subPath, so that kubelet updates it in the running pod.
- name: tls
  secret:
    secretName: {{ . | quote }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{/* Of every container: `kubectl describe pod` shows the end of its log as the termination message. */}}
{{- define "diskplugin.terminationMessage" -}}
terminationMessagePolicy: FallbackToLogsOnError
{{- end }}

{{/* securityContext of a container without host access. */}}
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
  image: {{ include "diskplugin.image" (dict "root" .root "image" $values.image "fallback" "" "key" (printf "sidecars.%s.image" .key)) }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args:
    - --csi-address=/csi/csi.sock
    - --http-endpoint=:{{ $values.httpPort }}
    - --timeout=150s
    # The default of 5 requests per second would block a hundred workers; the API server has its own flow control.
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
  {{- /* No liveness probe: in a standby, a sidecar serves no port while it waits for the driver. */}}
  {{- include "diskplugin.terminationMessage" . | nindent 2 }}
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

{{/* securityContext of a sidecar of the node: root, because the socket belongs to root. */}}
{{- define "diskplugin.unprivilegedRoot" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsUser: 0
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* The upstream livenessprobe: root, security (helper name). */}}
{{- define "diskplugin.livenessContainer" -}}
{{- $values := .root.Values.sidecars.livenessProbe -}}
- name: liveness-probe
  image: {{ include "diskplugin.image" (dict "root" .root "image" $values.image "fallback" "" "key" "sidecars.livenessProbe.image") }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args:
    - --csi-address=/csi/csi.sock
    - --http-endpoint=:{{ $values.httpPort }}
    - --probe-timeout=5s
    {{- range $values.extraArgs }}
    - {{ . | quote }}
    {{- end }}
  {{- include "diskplugin.terminationMessage" . | nindent 2 }}
  securityContext:
    {{- include .security . | nindent 4 }}
  resources:
    {{- toYaml $values.resources | nindent 4 }}
  volumeMounts:
    - name: socket
      mountPath: /csi
{{- end }}

{{/* Ports and probes of the driver's container: root, port, sidecar (whether the upstream livenessprobe may serve one). */}}
{{- define "diskplugin.probes" -}}
{{- $sidecar := and .sidecar .root.Values.sidecars.livenessProbe.enabled -}}
ports:
  - name: health
    containerPort: {{ .port }}
  {{- if $sidecar }}
  # Served by the livenessprobe sidecar.
  - name: livez
    containerPort: {{ .root.Values.sidecars.livenessProbe.httpPort }}
  {{- end }}
livenessProbe:
  httpGet:
    path: /healthz
    port: {{ ternary "livez" "health" $sidecar }}
    {{- if and .root.Values.http.tls.secretName (not $sidecar) }}
    scheme: HTTPS
    {{- end }}
  initialDelaySeconds: 10
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 5
readinessProbe:
  httpGet:
    path: /readyz
    port: health
    {{- if .root.Values.http.tls.secretName }}
    scheme: HTTPS
    {{- end }}
  periodSeconds: 10
  timeoutSeconds: 5
{{- end }}

{{/* Flags of both roles, and of doctor. */}}
{{- define "diskplugin.commonArgs" -}}
- --driver-name={{ .Values.driverName }}
- --log-format={{ .Values.logFormat }}
- --region={{ required "region must be set, for example cn-beijing" .Values.region }}
{{- with .Values.metadata.endpoint }}
- --metadata-endpoint={{ . }}
{{- end }}
{{- if .Values.metadata.tokenOnly }}
- --metadata-token-only
{{- end }}
{{- end }}

{{/* Flags of both roles that serve calls. */}}
{{- define "diskplugin.serverArgs" -}}
- --log-level={{ .Values.logLevel }}
{{- if .Values.http.tls.secretName }}
- --http-tls-cert-file=/etc/diskplugin-tls/tls.crt
- --http-tls-key-file=/etc/diskplugin-tls/tls.key
{{- end }}
{{- end }}

{{/* The labels `job`, `node` and `release` of a scrape, which the alerts and dashboards use. */}}
{{- define "diskplugin.relabelings" -}}
relabelings:
  - targetLabel: job
    replacement: {{ . }}
  - sourceLabels: [__meta_kubernetes_pod_node_name]
    targetLabel: node
  - sourceLabels: [__meta_kubernetes_pod_label_app_kubernetes_io_instance]
    targetLabel: release
{{- end }}
