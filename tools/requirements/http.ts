import { section } from './requirement.ts'

export const CORS = section('CORS', 'specification, "CORS"', [
  'AllowOrigins is * by default',
  'AllowMethods is GET, POST, DELETE, OPTIONS by default',
  'AllowHeaders is Authorization, Content-Type, MCP-Protocol-Version, MCP-Session-Id, Last-Event-ID, Accept by default',
  'ExposeHeaders is MCP-Session-Id, MCP-Protocol-Version by default',
  'AllowCredentials is false by default',
  'MaxAge is 86400 seconds by default',
  'a preflight is answered before the connector runs',
])

export const ORIGINS = section('ORIGIN', 'specification, "Origin validation"', [
  'auto matches localhost, 127.0.0.1 and, for MCP, ::1, [::1], 0.0.0.0 and the bind address; nothing else',
  '* allows every origin',
  'a custom list allows exactly the origins it names',
  'an empty Origin header is always allowed',
  'a rejected origin is refused before the JSON-RPC method runs',
])

export const PROBES = section('PROBE', 'specification, "Probe and other routes" and "HTTP status codes"', [
  'GET /ping is a public liveness probe on the shared listener',
  'GET /health on the management listener is plain text `healthy`, or `not healthy` with 500',
  'GET /ready on the management listener is raw HealthState JSON, 503 when not ready',
  'GET /metrics on the management listener is a Prometheus text exposition',
  '/kill and unknown paths are 404 in plain text',
])

export const SERVICE = section('SVC', 'specification, "What the service does" and "Limits"', [
  'the shared listener is on port 9090 by default, the management listener on 8080',
  'the management listener has read and write time-outs of 180 seconds',
  'SSE streams carry a keepalive every 30 seconds',
  'CONNECTORSMCP_TRUSTED_ORIGINS sets the trusted origins of /mcp',
])
