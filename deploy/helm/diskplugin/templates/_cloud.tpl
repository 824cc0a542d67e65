{{/* Flags of the controller and of its checks: the cloud and the credentials. */}}
{{- define "diskplugin.cloudArgs" -}}
- --network={{ .Values.network }}
{{- if include "diskplugin.caBundle" . }}
- --ca-bundle=/etc/diskplugin-ca/ca.crt
{{- end }}
{{- with .Values.zone }}
- --zone={{ . }}
{{- end }}
{{- with .Values.ecsEndpoint }}
- --ecs-endpoint={{ . }}
{{- end }}
{{- with .Values.stsEndpoint }}
- --sts-endpoint={{ . }}
{{- end }}
{{- if eq .Values.credentials.source "secret" }}
- --credentials=directory
- --credentials-dir=/var/run/secrets/diskplugin
{{- else if eq .Values.credentials.source "oidc" }}
- --credentials=oidc
- --oidc-role-arn={{ .Values.credentials.oidc.roleArn }}
- --oidc-provider-arn={{ .Values.credentials.oidc.providerArn }}
- --oidc-token-file=/var/run/secrets/diskplugin/token
{{- else }}
- --credentials=instance-role
{{- with .Values.credentials.instanceRole.name }}
- --instance-role={{ . }}
{{- end }}
{{- end }}
{{- with .Values.credentials.assumeRole.arn }}
- --assume-role-arn={{ . }}
{{- end }}
{{- with .Values.credentials.assumeRole.externalId }}
- {{ printf "--assume-role-external-id=%s" . | quote }}
{{- end }}
{{- end }}

{{/* Volume of the token for the API server. */}}
{{- define "diskplugin.apiVolume" -}}
# The same as automountServiceAccountToken would mount into every container.
- name: api
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3607
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
{{- end }}

{{/* Source of the volume with the trusted authorities. */}}
{{- define "diskplugin.caBundle" -}}
{{- $bundle := .Values.controller.caBundle }}
{{- $items := list (dict "key" $bundle.key "path" "ca.crt") }}
{{- if and $bundle.configMapName $bundle.secretName }}
{{- fail "controller.caBundle has both configMapName and secretName: remove one of them" }}
{{- else if $bundle.configMapName }}
{{- toYaml (dict "configMap" (dict "name" $bundle.configMapName "items" $items)) }}
{{- else if $bundle.secretName }}
{{- toYaml (dict "secret" (dict "secretName" $bundle.secretName "defaultMode" 0440 "items" $items)) }}
{{- end }}
{{- end }}

{{/* Mounts of the controller and of its checks: credentials, trusted authorities, and those of the user. */}}
{{- define "diskplugin.cloudMounts" -}}
{{- if ne .Values.credentials.source "instanceRole" }}
- name: credentials
  mountPath: /var/run/secrets/diskplugin
  readOnly: true
{{- end }}
{{- if include "diskplugin.caBundle" . }}
- name: ca-bundle
  mountPath: /etc/diskplugin-ca
  readOnly: true
{{- end }}
{{- with .Values.controller.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Refuses additions of the user that collide with a pod's own: section, values, and the pod's volumes, paths and env. */}}
{{- define "diskplugin.checkExtra" -}}
{{- $extra := list -}}
{{- range $index, $volume := .values.extraVolumes -}}
{{- if has .name (concat $.volumes $extra) -}}
{{- fail (printf "%s.extraVolumes[%d].name: the pod has another volume %s; choose another name" $.section $index .name) -}}
{{- end -}}
{{- $extra = append $extra .name -}}
{{- end -}}
{{- $mounted := list -}}
{{- range $index, $mount := .values.extraVolumeMounts -}}
{{- $field := printf "%s.extraVolumeMounts[%d]" $.section $index -}}
{{- if not (has .name $extra) -}}
{{- fail (printf "%s.name: %s is not in %s.extraVolumes" $field .name $.section) -}}
{{- end -}}
{{- $path := clean .mountPath -}}
{{- range concat $.paths (list "/bin" "/lib" "/lib64" "/sbin" "/usr" "/proc" "/sys") -}}
{{- if or (eq $path "/") (hasPrefix (printf "%s/" .) (printf "%s/" $path)) (hasPrefix (printf "%s/" $path) (printf "%s/" .)) -}}
{{- fail (printf "%s.mountPath: %s overlaps %s, which the driver uses; choose another path" $field $path .) -}}
{{- end -}}
{{- end -}}
{{- if has $path $mounted -}}
{{- fail (printf "%s.mountPath: %s has another mount; choose another path" $field $path) -}}
{{- end -}}
{{- $mounted = append $mounted $path -}}
{{- end -}}
{{- $set := .env -}}
{{- range $index, $variable := .values.env -}}
{{- if has .name $set -}}
{{- fail (printf "%s.env[%d].name: %s is set by the chart, or twice; remove it" $.section $index .name) -}}
{{- end -}}
{{- $set = append $set .name -}}
{{- end -}}
{{- end }}

{{/* Volumes of the controller and of its checks: the token for the API server, credentials, trusted authorities, and those of
     the user. */}}
{{- define "diskplugin.cloudVolumes" -}}
{{ include "diskplugin.apiVolume" . }}
{{- if eq .Values.credentials.source "secret" }}
# A directory without subPath, so that kubelet updates it in the running pod.
- name: credentials
  secret:
    secretName: {{ include "diskplugin.secret" . | quote }}
    defaultMode: 0440
{{- else if eq .Values.credentials.source "oidc" }}
- name: credentials
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken:
          path: token
          audience: {{ .Values.credentials.oidc.audience | quote }}
          expirationSeconds: {{ .Values.credentials.oidc.expirationSeconds }}
{{- end }}
{{- with include "diskplugin.caBundle" . }}
# A directory without subPath, so that kubelet updates it in the running pod.
- name: ca-bundle
  {{- . | nindent 2 }}
{{- end }}
{{- with .Values.controller.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
