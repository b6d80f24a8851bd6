import { CORS_DEFAULTS, DEFAULT_MAX_BODY_BYTES, PROXY_HEADERS } from '@signalbox/http-kit'
import type { Static } from 'typebox'
import { Type } from 'typebox'

import { ENGINE_SETTINGS, MAX_CHANNELS, STORE_PATH } from '../engine/engine-settings.ts'
import { CONNECTORS } from './connectors.ts'
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
  trustedOriginsSetting,
} from './setting-types.ts'

/**
 * Every setting. This one schema defines the types, the defaults, the validation, the names in the
 * file, the environment and the flags, `--help`, `--print-config` and
 * `docs/reference/configuration.md`. `connectors.ts`, `limits.ts` and the engines have parts of it.
 *
 * `allowed` describes a pattern in words.
 */

export const CONFIG_SCHEMA = group('Signalbox', {
  http: group('The shared listener: tools and agents', {
    host: host('127.0.0.1', {
      description:
        'Bind address of the shared listener. An address other than loopback logs a warning while authentication is off.',
    }),
    port: integer(9090, 0, 65_535, { description: 'Port of the shared listener; 0 picks a free one.' }),
    allowedHosts: list(
      ['auto'],
      '^(?:auto|\\*|[A-Za-z0-9._:\\[\\]-]{1,255})$',
      'auto, or *, or a list of host names without ports',
      {
        description:
          'Allowed values of the `Host` header on both listeners while authentication is off. They keep web pages from reaching the server under another host name. `auto`: localhost, the bind address, the host of `PUBLIC_URL`, and IP addresses.',
      },
      1,
    ),
  }),
  api: group('The management listener: operators', {
    host: host('127.0.0.1', {
      description:
        'Bind address of the management listener. An address other than loopback logs a warning while authentication is off.',
    }),
    port: integer(8080, 0, 65_535, { description: 'Port of the management listener; 0 picks a free one.' }),
    trustedOrigins: trustedOriginsSetting({
      description:
        'Browser origins that may read the management listener; the probes accept every origin. `auto`: only the origin of the console, that is the scheme, host and port under which a request reaches the listener.',
    }),
    authentication: group('Authentication on the management listener', {
      enable: flag(false, {
        description:
          'Requires a token, verified with the same keys, on the management listener. The roles in it decide what the caller may do. Probes stay public.',
      }),
    }),
    security: group('TLS on the management listener', {
      certFile: path({
        description:
          "A PEM file with the server's certificate and its intermediate certificates. The server reads it again when it changes.",
      }),
      keyFile: path({ description: 'A PEM file with the private key of the certificate, without passphrase.' }),
      caFile: path({
        description:
          'A PEM file with the authorities of client certificates. If set, clients must present a certificate of one of them (mutual TLS), probes included.',
      }),
    }),
  }),
  console: group('The operator console', {
    enable: flag(true, {
      description:
        'Serves the [console](../guides/console.md), a web page for operators, at `/console/` of the management listener.',
    }),
    traceUrl: Type.String({
      default: '',
      pattern: '^(?:https?://[^\\s]{1,1000})?$',
      allowed: 'an http or https URL with {trace_id}; empty means none',
      description:
        'The page of a trace in your tracing system, with `{trace_id}` for its id, such as `https://jaeger.example.com/trace/{trace_id}`. The console links to it from the trace of a message.',
    }),
    oauth: group('Signing in to the console at an identity provider', {
      clientId: Type.String({
        default: '',
        pattern: '^[!-~]{0,1000}$',
        allowed: 'up to 1000 visible ASCII characters; empty means none',
        description:
          'The id of the public client that the identity provider has for the console. If set, operators [sign in](../guides/console.md#sign-in) at the provider. Requires `API_AUTHENTICATION_ENABLE`.',
      }),
      issuer: Type.String({
        default: '',
        pattern: '^(?:https?://[^\\s?#]{1,1000})?$',
        allowed: 'an https URL, or http on loopback, without query; empty means none',
        description:
          'The issuer URL of the identity provider, below which its metadata is. If empty, it is `AUTHENTICATION_ISSUER`.',
      }),
      scopes: list(['openid'], '^[!#-\\[\\]-~]{1,200}$', 'a list of scopes', {
        description:
          'Scopes that the console requests. With `AUTHENTICATION_OAUTH_ENABLE` tokens need `signalbox:manage`, or the provider must add it.',
      }),
      resource: Type.String({
        default: '',
        pattern: '^(?:[A-Za-z][A-Za-z0-9+.-]*:[^\\s#]{1,1000})?$',
        allowed: 'a URI without fragment; empty means none',
        description:
          'The resource that the console requests tokens for (RFC 8707): one entry of `AUTHENTICATION_AUDIENCE`. If empty, the provider decides.',
      }),
    }),
  }),
  authentication: group('Authentication: bearer tokens (JWT)', {
    enable: flag(false, {
      description:
        'Requires a token on the shared listener; otherwise every caller is `anonymous`. Needs exactly one of the five key sources.',
    }),
    jwksUrl: Type.String({
      default: '',
      allowed: 'an http or https URL; empty means none',
      description: 'Key source: the URL of a JSON Web Key Set, usually of an identity provider.',
    }),
    jwksFile: path({
      description: 'Key source: a file with a JSON Web Key Set. The server reads it again when it changes.',
    }),
    keyFile: path({
      description:
        'Key source: a PEM file with a public key or a certificate. The server reads it again when it changes.',
    }),
    secret: Type.String({
      default: '',
      secret: true,
      allowed: 'a text of 32 bytes or more; empty means none',
      description:
        'Key source: a secret shared with the issuer of the tokens. Every holder can make tokens: prefer a public key.',
    }),
    secretFile: path({
      description:
        'Key source: a file with such a secret alone, instead of `AUTHENTICATION_SECRET`. The server reads it again when it changes.',
    }),
    algorithms: list([], '^[A-Za-z0-9]{1,16}$', 'a list such as ES256, RS256; they must go with the keys', {
      description:
        'Accepted signature algorithms. If empty, the server accepts the first algorithm of the key, such as ES256 or RS256; for a secret HS256; for a key set RS256, ES256 and EdDSA.',
    }),
    issuer: Type.String({
      default: '',
      allowed: 'a text; empty accepts any',
      description: 'The required claim `iss` of a token.',
    }),
    audience: list([], '^.{1,1024}$', 'a list; empty accepts any', {
      description: 'The claim `aud` of a token must contain one of these.',
    }),
    oauth: group('OAuth on /mcp', {
      enable: flag(false, {
        description:
          'Makes `/mcp` a protected resource of OAuth 2.1: clients find the authorization server automatically, and the scopes of tokens restrict callers. Needs `AUTHENTICATION_ENABLE`, `AUTHENTICATION_ISSUER`, `PUBLIC_URL`, and in `AUTHENTICATION_AUDIENCE` the URL of `/mcp`.',
      }),
      authorizationServers: list([], '^https?://[^\\s"]{1,1000}$', 'a list of http or https URLs', {
        description: 'The issuer URLs that clients get tokens from. If empty, the only one is `AUTHENTICATION_ISSUER`.',
      }),
      scopePrefix: Type.String({
        default: '',
        pattern: '^[!#-\\[\\]-~]{0,200}$',
        allowed: 'up to 200 visible ASCII characters without quotation mark and backslash',
        description:
          'A text before each scope that clients ask for, such as `api://signalbox/`. Some authorization servers require one. Tokens may have it or not.',
      }),
    }),
  }),
  authorization: group('Authorization', {
    enable: flag(false, {
      description: 'Applies a policy to callers of the shared listener; without it they may do everything.',
    }),
    policyFile: path({
      description: 'A YAML or JSON file with the policy. The server reads it again when it changes.',
    }),
  }),
  security: group('TLS on the shared listener', {
    certFile: path({
      description:
        "A PEM file with the server's certificate and its intermediate certificates. The server reads it again when it changes.",
    }),
    keyFile: path({ description: 'A PEM file with the private key of the certificate, without passphrase.' }),
    caFile: path({
      description:
        'A PEM file with the authorities of client certificates. If set, clients must present a certificate of one of them (mutual TLS).',
    }),
  }),
  publicUrl: Type.String({
    default: '',
    pattern: '^(?:https?://[^\\s]{1,1000})?$',
    allowed: 'an http or https URL; empty means none',
    description:
      'The URL of the shared listener for clients, such as `https://broker.example.com`, without query. Agent cards name it; without it they name the host of each request, and are not signed.',
  }),
  agentCredentialsFile: path({
    description:
      'A YAML or JSON file with credentials for agents, by agent_id: `origin`, and `bearer`, `api_key` or `oauth`. They replace those of the registration. The server reads the file again when it changes.',
  }),
  channelSettingsFile: path({
    description:
      'A file with entries of the channel settings, in YAML or JSON: an array of {type, match, …}. The server reads it again when it changes. Entries that operators write win over those of the file.',
  }),
  agentsFile: path({
    description:
      'A YAML or JSON file with a list of agents: `agent_card_url`, and optionally `agent_id` and `a2a`. The server registers them, and removes those that are taken out of it. All nodes need the same file. The server reads it again when it changes.',
  }),
  dnsServers: list(
    [],
    '^(?:[0-9.]{7,15}(?::[0-9]{1,5})?|[0-9A-Fa-f:.]{2,45}|\\[[0-9A-Fa-f:.]{2,45}\\](?::[0-9]{1,5})?)$',
    'a list of addresses, with a port if it is not 53: 10.0.0.2, [fd00::2]:5353',
    {
      description:
        'Name servers for the hosts of agents, webhooks, key sets and identity providers. If empty, the server uses those of `/etc/resolv.conf`. `/etc/hosts` and the search domains of `/etc/resolv.conf` apply in both cases.',
    },
  ),
  trustedProxies: list([], '^[0-9A-Fa-f:.]{2,45}(?:/[0-9]{1,3})?$', 'a list of addresses and CIDR ranges', {
    description:
      'Proxies that name the client in the header `TRUSTED_PROXY_HEADER`, for limits, audit and logs. The header is ignored from all other addresses.',
  }),
  trustedProxyHeader: Type.Enum([...PROXY_HEADERS], {
    default: 'x-forwarded-for',
    description:
      'The header in which the `TRUSTED_PROXIES` name the client. They must replace it or append to it; the other one is ignored.',
  }),
  limits: LIMITS,
  ...ENGINE_SETTINGS,
  store: group('Storage on disk', {
    path: STORE_PATH,
    maxAgeSeconds: count(0, {
      description: 'Age after which events are removed from the events stores, in seconds; 0 keeps all.',
    }),
    maxBytes: count(0, {
      description: 'Maximum size of an events store, in bytes; the oldest events are removed. 0 keeps all.',
    }),
  }),
  queue: group('Queues', {
    maxMessages: count(0, { description: 'Maximum number of messages in one queue; 0 means no limit.' }),
    maxBytes: count(0, { description: 'Maximum size of one queue, in bytes; 0 means no limit.' }),
  }),
  maxChannels: MAX_CHANNELS,
  audit: group('The audit log', {
    messages: flag(false, {
      description: 'Audits every message in addition to management actions, refusals and changes.',
    }),
    maxAgeSeconds: count(2_592_000, { description: 'Maximum age of an entry, in seconds; 0 keeps all.' }),
    maxBytes: count(268_435_456, {
      description: 'Maximum size of the log, in bytes; the oldest entries are removed. 0 keeps all.',
    }),
  }),
  metrics: group('Metrics', {
    queues: list([], '^\\S.{0,255}$', 'a list of queue names and patterns', {
      description:
        'Queues with separate series on `/metrics`: depth, and age of the oldest message. In a pattern `*` matches any characters, dots included, and `?` matches one. At most 200 queues have series; they are the first by name.',
    }),
  }),
  telemetry: group('Traces (OpenTelemetry)', {
    destinations: list([], '^\\S.{0,255}$', 'a list of channel names and patterns', {
      description:
        'Channels whose names are a part of the [names of spans](../guides/telemetry.md#names). In a pattern `*` matches any characters, dots included, and `?` matches one. If empty, they are `METRICS_QUEUES`. The variables of OpenTelemetry (`OTEL_*`) switch traces on.',
    }),
  }),
  routing: group('Routing', {
    file: path({
      description: 'A JSON file with the routing table. The server reads it again when it changes.',
    }),
  }),
  webhooks: group('Webhooks', {
    enable: flag(false, {
      description:
        'Serves `/ce/subscriptions`, and delivers the messages of channels to HTTP endpoints. Needs `WEBHOOKS_KEY_FILE`.',
    }),
    keyFile: path({
      description:
        'A file of 32 random bytes, which seals the secrets of subscriptions and the registered credentials of agents. All nodes need the same file. The server creates it with mode 0600 if it does not exist.',
    }),
    allow: hosts({
      description:
        'Hosts and addresses that may be called in addition to public addresses, also by plain http. Link-local and cloud-metadata addresses are always refused.',
    }),
    maxAgeSeconds: integer(86_400, 1, 2_592_000, {
      description:
        'Time after the first attempt in which a message is tried again, in seconds. Then it moves to the dead-letter queue of its subscription.',
    }),
    maxPerOwner: count(100, { description: 'Maximum number of subscriptions of one caller; 0 means no limit.' }),
    maxFailedHandshakes: count(30, {
      description:
        'Maximum number of endpoints that may refuse, or not answer, the handshake of one caller in a minute, on each node; 0 means no limit. With one host, all callers together may have four times as many.',
    }),
  }),
  settleGraceMs: integer(250, 0, 10_000, {
    description:
      'Time between the response of a destructive read and the removal of its messages, in milliseconds. If the connection fails in that time, the messages are delivered again.',
  }),
  shutdownSeconds: integer(25, 0, 3_600, {
    description: 'Maximum time of a shutdown, in seconds. Calls that still run then are aborted.',
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
      description: 'Allows requests with credentials; not together with the origin `*`.',
    }),
    maxAge: count(CORS_DEFAULTS.maxAge, {
      description: 'Time for which a browser may cache a preflight answer, in seconds.',
    }),
  }),
  connectors: CONNECTORS,
  maxBodyBytes: integer(DEFAULT_MAX_BODY_BYTES, 1_024, 536_870_912, {
    description: 'Maximum size of a request body, in bytes, on both listeners.',
  }),
  log: group('Logs, on stdout', {
    level: Type.Enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      default: 'info',
      description: 'Lowest level of the lines that are written.',
    }),
    requests: flag(true, {
      description: 'Writes a line of level info for each request to the shared listener, when it is complete.',
    }),
    format: Type.Enum(['json', 'pretty'], {
      default: 'json',
      description: '`json`: one JSON object per line; `pretty`: formatted for people.',
    }),
  }),
})

/** The effective configuration. */
export type Config = Static<typeof CONFIG_SCHEMA>
