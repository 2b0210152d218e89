{{- define "rayflink.labels" -}}
app.kubernetes.io/name: rayflink
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | quote }}
{{- end }}

{{- define "rayflink.image" -}}
image: {{ .Values.image.repository }}:{{ .Values.image.tag }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- define "rayflink.redis" -}}
{{ .Values.redis.address | default (printf "%s-redis:6379" .Release.Name) }}
{{- end }}

{{- define "rayflink.directory" -}}
{{ .Values.storage.url | default "/data" }}
{{- end }}

{{- define "rayflink.pod" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- end }}

{{- define "rayflink.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "rayflink.environment" -}}
- {name: RAYFLINK_CONF_DIR, value: /etc/rayflink}
- {name: RAY_USAGE_STATS_ENABLED, value: "0"}
# Nodes and tasks wait so many seconds for a head pod that comes back.
- {name: RAY_gcs_rpc_server_reconnect_timeout_s, value: "600"}
{{- end }}

{{- define "rayflink.mounts" -}}
- {name: options, mountPath: /etc/rayflink, readOnly: true}
# KubeRay's names: the autoscaler's container finds the first one by it.
- {name: ray-logs, mountPath: /tmp/ray}
- {name: shared-mem, mountPath: /dev/shm}
{{- if not .Values.storage.url }}
- {name: data, mountPath: /data}
{{- end }}
{{- end }}

{{- define "rayflink.volumes" -}}
- name: options
  configMap: {name: {{ .Release.Name }}-options}
{{- if not .Values.storage.url }}
- name: data
  persistentVolumeClaim: {claimName: {{ .Values.storage.claim.existing | default (printf "%s-data" .Release.Name) }}}
{{- end }}
{{- end }}

{{- define "rayflink.probes" -}}
# The agent of a node asks its raylet and, on the head node, the control service. No token is needed.
startupProbe:
  httpGet: {path: /api/healthz, port: 52365}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 60
readinessProbe:
  httpGet: {path: /api/healthz, port: 52365}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 10
livenessProbe:
  httpGet: {path: /api/healthz, port: 52365}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: {{ . }}
{{- end }}

{{- define "rayflink.cluster" -}}
rayVersion: {{ .Values.rayVersion | quote }}
authOptions: {mode: token, secretName: {{ .Values.secretName }}}
enableInTreeAutoscaling: true
autoscalerOptions:
  version: v2
  upscalingMode: Default
  idleTimeoutSeconds: {{ .Values.autoscaler.idleTimeoutSeconds }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  resources: {{- toYaml .Values.autoscaler.resources | nindent 4 }}
  {{- include "rayflink.containerSecurity" . | nindent 2 }}
{{- if .Values.redis.enabled }}
gcsFaultToleranceOptions:
  redisAddress: {{ include "rayflink.redis" . }}
  redisPassword:
    valueFrom:
      secretKeyRef: {name: {{ .Values.secretName }}, key: redis_password}
{{- end }}
headGroupSpec:
  # No tasks on the head node: it holds coordinators and Ray's own services.
  rayStartParams: {num-cpus: "0", dashboard-host: 0.0.0.0}
  template:
    metadata:
      labels: {{- include "rayflink.labels" . | nindent 8 }}
    spec:
      {{- include "rayflink.pod" . | nindent 6 }}
      terminationGracePeriodSeconds: 60
      containers:
        - name: ray-head
          {{- include "rayflink.image" . | nindent 10 }}
          env: {{- include "rayflink.environment" . | nindent 12 }}
          ports:
            - {name: gcs-server, containerPort: 6379}
            - {name: dashboard, containerPort: 8265}
            - {name: metrics, containerPort: 8080}
          resources: {{- toYaml .Values.head.resources | nindent 12 }}
          volumeMounts: {{- include "rayflink.mounts" . | nindent 12 }}
          {{- include "rayflink.containerSecurity" . | nindent 10 }}
          {{- include "rayflink.probes" 120 | nindent 10 }}
        {{- if eq .Values.mode "session" }}
        # It joins Ray as a driver does, by the sockets and the shared memory of the head node.
        - name: dispatcher
          {{- include "rayflink.image" . | nindent 10 }}
          command: [bash, -c]
          args:
            - >-
              until ray health-check --address $RAY_ADDRESS; do sleep 2; done;
              exec rayflink cluster run -D rest.bind-address=0.0.0.0 -D rest.port=8081
          env:
            {{- include "rayflink.environment" . | nindent 12 }}
            - {name: RAY_ADDRESS, value: "127.0.0.1:6379"}
            - {name: RAY_AUTH_MODE, value: token}
            - name: RAY_AUTH_TOKEN
              valueFrom: {secretKeyRef: {name: {{ .Values.secretName }}, key: auth_token}}
            - name: REST_TOKEN
              valueFrom: {secretKeyRef: {name: {{ .Values.secretName }}, key: rest_token}}
            - {name: RAYFLINK_OPTIONS, value: rest.token=$(REST_TOKEN)}
          ports:
            - {name: rest, containerPort: 8081}
          resources: {{- toYaml .Values.dispatcher.resources | nindent 12 }}
          volumeMounts: {{- include "rayflink.mounts" . | nindent 12 }}
          {{- include "rayflink.containerSecurity" . | nindent 10 }}
          # No other probe: while a container is not ready, workers do not find the head pod.
          livenessProbe:
            tcpSocket: {port: 8081}
            initialDelaySeconds: 120
            periodSeconds: 10
            failureThreshold: 6
        {{- end }}
      volumes:
        {{- include "rayflink.volumes" . | nindent 8 }}
        - name: ray-logs
          emptyDir: {}
        - name: shared-mem
          emptyDir: {medium: Memory, sizeLimit: {{ .Values.head.sharedMemory }}}
      {{- with .Values.head.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.head.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
workerGroupSpecs:
  {{- $all := . }}
  {{- range .Values.workers }}
  - groupName: {{ .name }}
    replicas: {{ .minReplicas }}
    minReplicas: {{ .minReplicas }}
    maxReplicas: {{ .maxReplicas }}
    rayStartParams: {}
    template:
      metadata:
        labels: {{- include "rayflink.labels" $all | nindent 10 }}
      spec:
        {{- include "rayflink.pod" $all | nindent 8 }}
        terminationGracePeriodSeconds: 60
        containers:
          - name: ray-worker
            {{- include "rayflink.image" $all | nindent 12 }}
            env: {{- include "rayflink.environment" $all | nindent 14 }}
            ports:
              - {name: metrics, containerPort: 8080}
            resources: {{- toYaml .resources | nindent 14 }}
            volumeMounts: {{- include "rayflink.mounts" $all | nindent 14 }}
            {{- include "rayflink.containerSecurity" $all | nindent 12 }}
            {{- include "rayflink.probes" 120 | nindent 12 }}
        volumes:
          {{- include "rayflink.volumes" $all | nindent 10 }}
          - name: ray-logs
            emptyDir: {sizeLimit: {{ .scratch | default "50Gi" }}}
          - name: shared-mem
            emptyDir: {medium: Memory, sizeLimit: {{ .sharedMemory | default "2Gi" }}}
        {{- with .nodeSelector }}
        nodeSelector: {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- with .tolerations }}
        tolerations: {{- toYaml . | nindent 10 }}
        {{- end }}
  {{- end }}
{{- end }}
