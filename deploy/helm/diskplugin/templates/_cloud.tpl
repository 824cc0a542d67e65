{{/* Flags of the controller and of its checks: the cloud and the credentials. */}}
{{- define "diskplugin.cloudArgs" -}}
- --network={{ .Values.network }}
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

{{/* Volumes of the controller and of its checks: the token for the API server, and the credentials. */}}
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
{{- end }}
