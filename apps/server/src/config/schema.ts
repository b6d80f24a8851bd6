import { CORS_DEFAULTS, DEFAULT_MAX_BODY_BYTES } from '@signalbox/http-kit'
import type { Static } from 'typebox'
import { Type } from 'typebox'

import { ENGINE_SETTINGS, MAX_CHANNELS, STORE_PATH } from '../engine/engines.ts'
import { LIMITS } from './limits.ts'
import {
  count,
  flag,
  group,
  host,
  hosts,
  HTTP_TOKEN,
  integer,
  list,
  ORIGIN,
  path,
  trustedOrigins,
} from './setting-types.ts'

/**
 * Every setting there is. From this one schema come the types, the defaults, the checks, the names in the file, the
 * environment and the flags, `--help`, `--print-config` and `docs/reference/configuration.md`.
 *
 * `allowed` says in words what a pattern says in signs.
 */

export const CONFIG_SCHEMA = group('Signalbox', {
  http: group('The shared listener: tools and agents', {
    host: host('127.0.0.1', {
      description:
        'Address that the shared listener binds to. Anything but loopback warns while authentication is off.',
    }),
    port: integer(9090, 0, 65_535, { description: 'Port of the shared listener; 0 picks a free one.' }),
    allowedHosts: list(
      ['auto'],
      '^(?:auto|\\*|[A-Za-z0-9._:\\[\\]-]{1,255})$',
      'auto, or *, or a list of host names without ports',
      {
        description:
          'Which hosts a `Host` header may name, on both listeners, while authentication is off: a web page cannot then reach the server under a name of its own. `auto`: localhost, the bind address, the host of `PUBLIC_URL`, and IP addresses.',
      },
      1,
    ),
  }),
  api: group('The management listener: operators', {
    host: host('127.0.0.1', {
      description: 'Address that the management listener binds to. Anything but loopback warns, as above.',
    }),
    port: integer(8080, 0, 65_535, { description: 'Port of the management listener; 0 picks a free one.' }),
    trustedOrigins: trustedOrigins({
      description:
        'Browser origins that may read the management listener (the probes answer to all). `auto`: localhost, 127.0.0.1 and the bind address, on any port.',
    }),
    authentication: group('Authentication on the management listener', {
      enable: flag(false, {
        description:
          'Whether the management listener demands a token, by the same keys; what its caller may do there follows from the roles in it. Probes stay public.',
      }),
    }),
  }),
  authentication: group('Authentication: bearer tokens (JWT)', {
    enable: flag(false, {
      description:
        'Whether the shared listener demands a token; without, every caller is `anonymous`. Needs exactly one of the four sources of keys.',
    }),
    jwksUrl: Type.String({
      default: '',
      allowed: 'an http or https URL; empty is none',
      description: 'Where the keys come from: the URL of a JSON Web Key Set, such as an identity provider has.',
    }),
    jwksFile: path({
      description: 'Where the keys come from: a file with a JSON Web Key Set. Read again when it changes.',
    }),
    keyFile: path({
      description:
        'Where the key comes from: a PEM file with a public key or a certificate. Read again when it changes.',
    }),
    secret: Type.String({
      default: '',
      secret: true,
      allowed: 'a text of 32 bytes or more; empty is none',
      description:
        'A secret shared with whoever makes the tokens. Everybody who checks them can then make them: prefer a public key.',
    }),
    algorithms: list([], '^[A-Za-z0-9]{1,16}$', 'a list such as ES256, RS256; they must go with the keys', {
      description:
        'What tokens may be signed with. Empty is what the key takes first, such as ES256 or RS256; HS256 for a secret; RS256, ES256 and EdDSA for a key set.',
    }),
    issuer: Type.String({
      default: '',
      allowed: 'a text; empty is anything',
      description: 'What the claim `iss` of a token must be.',
    }),
    audience: list([], '^.{1,1024}$', 'a list; empty is anything', {
      description: 'What the claim `aud` of a token must hold: one of these.',
    }),
  }),
  authorization: group('Authorization: what callers may do', {
    enable: flag(false, {
      description:
        'Whether a policy decides what callers of the shared listener may do; without, they may do anything.',
    }),
    policyFile: path({
      description: 'A YAML or JSON file with the policy, which is read again when it changes.',
    }),
  }),
  security: group('TLS on the shared listener', {
    certFile: path({
      description: "The server's certificate, in PEM, with those between it and its root. Read again when it changes.",
    }),
    keyFile: path({ description: 'Its private key, in PEM, without passphrase.' }),
    caFile: path({
      description:
        'Certificates, in PEM, of those who sign the certificates of clients. With it, clients must show such a certificate (mutual TLS).',
    }),
  }),
  publicUrl: Type.String({
    default: '',
    pattern: '^(?:https?://[^\\s]{1,1000})?$',
    allowed: 'an http or https URL; empty is none',
    description: 'The URL that clients reach the shared listener by, where a proxy stands before it.',
  }),
  trustedProxies: list([], '^[0-9A-Fa-f:.]{2,45}(?:/[0-9]{1,3})?$', 'a list of addresses and CIDR ranges', {
    description:
      'Proxies whose `Forwarded` or `X-Forwarded-For` header names the client, for limits, audit and logs. Nobody else is believed.',
  }),
  limits: LIMITS,
  ...ENGINE_SETTINGS,
  store: group('What is kept on disk', {
    path: STORE_PATH,
    maxAgeSeconds: count(0, {
      description: 'Events older than this leave the events stores, in seconds; 0 keeps all.',
    }),
    maxBytes: count(0, {
      description: 'Past this many bytes the oldest events of an events store leave it; 0 keeps all.',
    }),
  }),
  queue: group('Queues', {
    maxMessages: count(0, { description: 'The most messages one queue holds; 0 is no limit.' }),
    maxBytes: count(0, { description: 'The most bytes one queue holds; 0 is no limit.' }),
  }),
  maxChannels: MAX_CHANNELS,
  audit: group('The audit log', {
    messages: flag(false, {
      description: 'Whether every message is audited, beside management actions, refusals and changes.',
    }),
    maxAgeSeconds: count(2_592_000, { description: 'Entries older than this go, in seconds; 0 keeps all.' }),
    maxBytes: count(268_435_456, { description: 'Past this many bytes the oldest entries go; 0 keeps all.' }),
  }),
  routing: group('Routing', {
    file: Type.String({
      default: '',
      allowed: 'a path',
      description: 'A JSON file with the routing table, which is read again when it changes; empty is none.',
    }),
  }),
  settleGraceMs: integer(250, 0, 10_000, {
    description:
      'How long after its response was handed to the socket a destructive read is settled, in milliseconds. A connection that fails before gives the messages back.',
  }),
  shutdownSeconds: integer(25, 0, 3_600, {
    description: 'The longest a shutdown waits for calls in flight, in seconds; then they are cut off.',
  }),
  cors: group('Browsers on the shared listener (CORS)', {
    allowOrigins: list(CORS_DEFAULTS.allowOrigins, `^(?:\\*|${ORIGIN})$`, '*, or a list of origins', {
      description: 'Origins that may read responses.',
    }),
    allowMethods: list(CORS_DEFAULTS.allowMethods, HTTP_TOKEN, 'a list of HTTP methods', {
      description: 'Methods that a preflight allows.',
    }),
    allowHeaders: list(CORS_DEFAULTS.allowHeaders, HTTP_TOKEN, 'a list of header names', {
      description: 'Request headers that a preflight allows.',
    }),
    exposeHeaders: list(CORS_DEFAULTS.exposeHeaders, HTTP_TOKEN, 'a list of header names', {
      description: 'Response headers that scripts may read.',
    }),
    allowCredentials: flag(CORS_DEFAULTS.allowCredentials, {
      description: 'Whether requests may carry credentials; not together with the origin `*`.',
    }),
    maxAge: count(CORS_DEFAULTS.maxAge, { description: 'How long a browser may keep a preflight answer, in seconds.' }),
  }),
  connectors: group('Connectors', {
    mcp: group('The MCP connector (/mcp)', {
      enable: flag(true, { description: 'Whether `/mcp` is served.' }),
      trustedOrigins: trustedOrigins({
        description:
          'Browser origins that may call `/mcp`. `auto`: localhost, 127.0.0.1, ::1, 0.0.0.0 and the bind address, on any port.',
      }),
      toolTimeoutSeconds: integer(60, 1, 3_600, {
        description: 'Bounds tools that have no timeout or wait of their own, in seconds.',
      }),
      maxStreams: count(1_000, { description: 'The most `GET /mcp` streams open at a time; 0 is no limit.' }),
    }),
    a2a: group('Agents (/agents, /a2a)', {
      enable: flag(true, {
        description: 'Whether `/agents`, `/a2a`, the agent cards and the four agent tools of `/mcp` are served.',
      }),
      agentTtlSeconds: integer(300, 0, 2_000_000, {
        description: 'An agent that has not been heard of for this long is removed, in seconds; 0 is never.',
      }),
      idHoldSeconds: integer(86_400, 0, 31_536_000, {
        description:
          "How long the id of an agent that expired stays its owner's, in seconds, unless an Admin deletes it; 0 is not at all.",
      }),
      defaultTimeoutSeconds: integer(300, 1, 2_000_000, {
        description: 'How long an agent may take when the request names no timeout, in seconds.',
      }),
      maxTimeoutSeconds: integer(3_600, 1, 2_000_000, {
        description:
          'Larger timeouts are capped to this, in seconds. At least `CONNECTORSA2_A_DEFAULT_TIMEOUT_SECONDS`.',
      }),
      maxAgents: count(0, { description: 'The most agents registered at a time; 0 is no limit.' }),
      maxSseIdleSeconds: integer(300, 0, 2_000_000, {
        description: 'A stream ends after this long without an event of the agent, in seconds; 0 is never.',
      }),
      trustedOrigins: trustedOrigins({
        description:
          'Browser origins that may call `/agents` and `/a2a`. `auto`: localhost, 127.0.0.1 and the bind address, on any port.',
      }),
      agentMaxResponseBytes: integer(10_485_760, 1_024, 536_870_912, {
        description: 'The largest response of an agent, and the largest event of a stream, in bytes.',
      }),
      agentTlsSkipVerify: flag(false, {
        description: "Whether agents' certificates are left unchecked; for development only. Warns at each start.",
      }),
      agentMaxConcurrency: integer(100, 1, 1_000_000, {
        description:
          'The most requests and streams that one agent has under way at a time, for each node that serves it.',
      }),
      agentUrlAllow: hosts({
        description: 'When set, agents are registered and called at these hosts and addresses only.',
      }),
      agentUrlDeny: hosts({
        description:
          'Agents are never registered or called at these hosts and addresses; before the allow list. Link-local and cloud-metadata addresses are always refused.',
      }),
      agentCaFile: Type.String({
        default: '',
        allowed: 'a path',
        description:
          "A PEM file of certificate authorities that agents' certificates are checked against, beside the well-known ones; empty is none.",
      }),
      agentProxyUrl: Type.String({
        default: '',
        secret: true,
        allowed: 'http://[user:password@]host[:port]; empty is none',
        description:
          'A forward proxy that all agents are called through: plain HTTP in absolute form, TLS by CONNECT. Never shown, as it may hold a password.',
      }),
    }),
    ce: group('The CloudEvents connector (/ce)', {
      enable: flag(true, { description: 'Whether `/ce/*` is served.' }),
      trustedOrigins: trustedOrigins({
        description:
          'Browser origins that may call `/ce/*`. `auto`: localhost, 127.0.0.1 and the bind address, on any port.',
      }),
      timeoutSeconds: integer(60, 1, 3_600, {
        description: 'How long a command or query without a `timeout` of its own waits for its answer, in seconds.',
      }),
      maxSseConnections: count(0, { description: 'The most subscriptions open at a time; 0 is no limit.' }),
      maxSseIdleSeconds: integer(300, 0, 2_000_000, {
        description: 'A subscription ends after this long without a message, in seconds; 0 is never.',
      }),
    }),
  }),
  maxBodyBytes: integer(DEFAULT_MAX_BODY_BYTES, 1_024, 536_870_912, {
    description: 'The largest request body, in bytes, on both listeners.',
  }),
  log: group('Logs, on stdout', {
    level: Type.Enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      default: 'info',
      description: 'The least important lines that are written.',
    }),
    requests: flag(true, {
      description: 'Whether each request to the shared listener is a line of level info, when it is over.',
    }),
    format: Type.Enum(['json', 'pretty'], {
      default: 'json',
      description: '`json`: a line each, for machines; `pretty`: for people.',
    }),
  }),
})

/** The effective configuration. */
export type Config = Static<typeof CONFIG_SCHEMA>
