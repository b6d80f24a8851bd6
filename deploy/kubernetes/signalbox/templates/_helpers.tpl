{{- define "signalbox.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "signalbox.selector" -}}
app.kubernetes.io/name: signalbox
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "signalbox.labels" -}}
{{ include "signalbox.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Refuses values that would start an open or a broken server. */}}
{{- define "signalbox.check" -}}
{{- if not (has .Values.engine (list "embedded" "nats")) -}}
{{- fail (printf "engine is %q; allowed: embedded, nats" .Values.engine) -}}
{{- end -}}
{{- $own := list "ENGINE" "HTTP_HOST" "HTTP_PORT" "API_HOST" "API_PORT" "STORE_PATH" "SHUTDOWN_SECONDS" "AUTHENTICATION_ENABLE" "API_AUTHENTICATION_ENABLE" "AUTHENTICATION_SECRET" "CONNECTORSA2_A_AGENT_PROXY_URL" -}}
{{- range $name, $value := .Values.settings -}}
{{- if has $name $own -}}
{{- fail (printf "settings.%s: the chart sets it, or it is a secret; allowed: other settings" $name) -}}
{{- end -}}
{{- if not (kindIs "string" $value) -}}
{{- fail (printf "settings.%s is not a text; allowed: a text, such as \"25\"" $name) -}}
{{- end -}}
{{- end -}}
{{- $s := .Values.secrets -}}
{{- if not (or .Values.settings.AUTHENTICATION_JWKS_URL $s.tokenKey.name $s.tokenSecret.name) -}}
{{- fail "there are no keys for tokens; allowed: settings.AUTHENTICATION_JWKS_URL, secrets.tokenKey.name or secrets.tokenSecret.name" -}}
{{- end -}}
{{- if and (eq .Values.engine "nats") (not (or .Values.settings.NATS_SERVERS $s.natsServers.name)) -}}
{{- fail "the engine is nats and has no servers; allowed: secrets.natsServers.name or settings.NATS_SERVERS" -}}
{{- end -}}
{{- end -}}

{{/* The pod, the same for both engines. */}}
{{- define "signalbox.pod" -}}
{{- $s := .Values.secrets -}}
metadata:
  labels:
    {{- include "signalbox.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/policy: {{ .Values.policy | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "signalbox.name" . | quote }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add .Values.shutdownSeconds 10 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: { type: RuntimeDefault }
  containers:
    - name: signalbox
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      ports:
        - { name: http, containerPort: 9090 }
        - { name: management, containerPort: 8080 }
      env:
        - { name: ENGINE, value: {{ .Values.engine | quote }} }
        - { name: HTTP_HOST, value: "0.0.0.0" }
        - { name: HTTP_PORT, value: "9090" }
        - { name: API_HOST, value: "0.0.0.0" }
        - { name: API_PORT, value: "8080" }
        - { name: STORE_PATH, value: /var/lib/signalbox }
        - { name: SHUTDOWN_SECONDS, value: {{ .Values.shutdownSeconds | quote }} }
        - { name: AUTHENTICATION_ENABLE, value: "true" }
        - { name: API_AUTHENTICATION_ENABLE, value: "true" }
        {{- if $s.tokenKey.name }}
        - { name: AUTHENTICATION_KEY_FILE, value: {{ printf "/run/signalbox/token-key/%s" $s.tokenKey.key | quote }} }
        {{- end }}
        {{- if $s.tokenSecret.name }}
        - { name: AUTHENTICATION_SECRET_FILE, value: {{ printf "/run/signalbox/token-secret/%s" $s.tokenSecret.key | quote }} }
        {{- end }}
        {{- if $s.cardKeys.name }}
        - { name: CONNECTORSA2_A_CARD_KEYS_FILE, value: {{ printf "/run/signalbox/card-keys/%s" $s.cardKeys.key | quote }} }
        {{- end }}
        {{- if eq .Values.engine "nats" }}
        {{- if $s.natsServers.name }}
        - { name: NATS_SERVERS_FILE, value: {{ printf "/run/signalbox/nats-servers/%s" $s.natsServers.key | quote }} }
        {{- end }}
        {{- if $s.natsCa.name }}
        - { name: NATS_TLS_CA_FILE, value: {{ printf "/run/signalbox/nats-ca/%s" $s.natsCa.key | quote }} }
        {{- end }}
        {{- if not .Values.settings.NATS_REPLICAS }}
        - { name: NATS_REPLICAS, value: "3" }
        {{- end }}
        {{- end }}
        {{- if .Values.tls.http.secretName }}
        - { name: SECURITY_CERT_FILE, value: /run/signalbox/tls-http/tls.crt }
        - { name: SECURITY_KEY_FILE, value: /run/signalbox/tls-http/tls.key }
        {{- end }}
        {{- if .Values.tls.management.secretName }}
        - { name: API_SECURITY_CERT_FILE, value: /run/signalbox/tls-management/tls.crt }
        - { name: API_SECURITY_KEY_FILE, value: /run/signalbox/tls-management/tls.key }
        {{- end }}
        {{- if .Values.policy }}
        - { name: AUTHORIZATION_ENABLE, value: "true" }
        - { name: AUTHORIZATION_POLICY_FILE, value: /run/signalbox/policy/policy.yaml }
        {{- end }}
        {{- range $name, $value := .Values.settings }}
        - { name: {{ $name }}, value: {{ $value | quote }} }
        {{- end }}
      {{- $scheme := ternary "HTTPS" "HTTP" (ne .Values.tls.http.secretName "") }}
      # Alive is not ready: a restart does not help a node that waits for NATS.
      startupProbe: { httpGet: { path: /ping, port: http, scheme: {{ $scheme }} }, periodSeconds: 2, failureThreshold: 60 }
      livenessProbe: { httpGet: { path: /ping, port: http, scheme: {{ $scheme }} }, periodSeconds: 10, timeoutSeconds: 5 }
      readinessProbe: { httpGet: { path: /ready, port: http, scheme: {{ $scheme }} }, periodSeconds: 5, timeoutSeconds: 6 }
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - { name: store, mountPath: /var/lib/signalbox }
        - { name: temporary, mountPath: /tmp }
        - { name: cache, mountPath: /home/node/.cache }
        {{- if $s.tokenKey.name }}
        - { name: token-key, mountPath: /run/signalbox/token-key, readOnly: true }
        {{- end }}
        {{- if $s.tokenSecret.name }}
        - { name: token-secret, mountPath: /run/signalbox/token-secret, readOnly: true }
        {{- end }}
        {{- if $s.cardKeys.name }}
        - { name: card-keys, mountPath: /run/signalbox/card-keys, readOnly: true }
        {{- end }}
        {{- if and (eq .Values.engine "nats") $s.natsServers.name }}
        - { name: nats-servers, mountPath: /run/signalbox/nats-servers, readOnly: true }
        {{- end }}
        {{- if and (eq .Values.engine "nats") $s.natsCa.name }}
        - { name: nats-ca, mountPath: /run/signalbox/nats-ca, readOnly: true }
        {{- end }}
        {{- if .Values.tls.http.secretName }}
        - { name: tls-http, mountPath: /run/signalbox/tls-http, readOnly: true }
        {{- end }}
        {{- if .Values.tls.management.secretName }}
        - { name: tls-management, mountPath: /run/signalbox/tls-management, readOnly: true }
        {{- end }}
        {{- if .Values.policy }}
        - { name: policy, mountPath: /run/signalbox/policy, readOnly: true }
        {{- end }}
  volumes:
    {{- if eq .Values.engine "nats" }}
    # Nodes of a cluster store nothing.
    - { name: store, emptyDir: {} }
    {{- end }}
    - { name: temporary, emptyDir: {} }
    - { name: cache, emptyDir: {} }
    # Readable for the server's user and nobody else.
    {{- if $s.tokenKey.name }}
    - { name: token-key, secret: { secretName: {{ $s.tokenKey.name | quote }}, defaultMode: 0440 } }
    {{- end }}
    {{- if $s.tokenSecret.name }}
    - { name: token-secret, secret: { secretName: {{ $s.tokenSecret.name | quote }}, defaultMode: 0440 } }
    {{- end }}
    {{- if $s.cardKeys.name }}
    - { name: card-keys, secret: { secretName: {{ $s.cardKeys.name | quote }}, defaultMode: 0440 } }
    {{- end }}
    {{- if and (eq .Values.engine "nats") $s.natsServers.name }}
    - { name: nats-servers, secret: { secretName: {{ $s.natsServers.name | quote }}, defaultMode: 0440 } }
    {{- end }}
    {{- if and (eq .Values.engine "nats") $s.natsCa.name }}
    - { name: nats-ca, secret: { secretName: {{ $s.natsCa.name | quote }}, defaultMode: 0440 } }
    {{- end }}
    {{- if .Values.tls.http.secretName }}
    - { name: tls-http, secret: { secretName: {{ .Values.tls.http.secretName | quote }}, defaultMode: 0440 } }
    {{- end }}
    {{- if .Values.tls.management.secretName }}
    - { name: tls-management, secret: { secretName: {{ .Values.tls.management.secretName | quote }}, defaultMode: 0440 } }
    {{- end }}
    {{- if .Values.policy }}
    - { name: policy, configMap: { name: {{ include "signalbox.name" . }}-policy } }
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    {{- if .Values.topologySpreadConstraints }}
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "signalbox.selector" . | nindent 10 }}
    {{- end }}
{{- end -}}
