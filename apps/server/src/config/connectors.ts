import { Type } from 'typebox'

import { count, flag, group, hosts, integer, path, trustedOriginsSetting } from './setting-types.ts'

/** The settings of the connectors. */
export const CONNECTORS = group('Connectors', {
  mcp: group('The MCP connector (/mcp)', {
    enable: flag(true, { description: 'Serves `/mcp`.' }),
    trustedOrigins: trustedOriginsSetting({
      description:
        'Browser origins that may call `/mcp`. `auto`: localhost, 127.0.0.1, ::1, 0.0.0.0 and the bind address, on any port.',
    }),
    toolTimeoutSeconds: integer(60, 1, 3_600, {
      description: 'Time-out of tools without an argument for it, in seconds.',
    }),
    maxStreams: count(1_000, { description: 'Maximum number of open `GET /mcp` streams; 0 means no limit.' }),
    maxAnswerBytes: integer(262_144, 1_024, 16_777_216, {
      description:
        "Size of the text of a tool's result after which no further message is added, in bytes. The first message is always complete.",
    }),
    tasks: group('Calls of `/mcp` that continue as tasks', {
      enable: flag(true, {
        description: 'Continues calls that wait for long as tasks, for clients that declare this extension.',
      }),
      afterMs: integer(3_000, 0, 600_000, {
        description: 'Time without an answer after which a call becomes a task, in milliseconds.',
      }),
      ttlSeconds: integer(3_600, 1, 2_000_000, {
        description: 'Time for which a task is kept after its creation and after its last change, in seconds.',
      }),
      max: count(10_000, {
        description: 'Maximum number of stored tasks; 0 means no limit. At the limit, calls do not become tasks.',
      }),
      maxResultBytes: integer(1_048_576, 1_024, 536_870_912, {
        description: 'Maximum size of the result of a task, in bytes; an error replaces a larger one.',
      }),
    }),
    leases: flag(false, {
      description:
        'Adds the argument `lease_seconds` to `queue_receive`, and the tools `queue_ack`, `queue_nack` and `queue_extend`.',
    }),
    responderTools: flag(false, {
      description:
        'Adds the tools `request_serve` and `request_reply`, which answer commands and queries, and `events_store_wait`.',
    }),
    inboxTools: flag(false, {
      description:
        'Adds the tools `inbox_take` and `inbox_reply`, with which a model answers the requests of a pull agent.',
    }),
    events: flag(false, {
      description:
        'Offers the messages of channels as events of the extension Events, by polls, streams and, with `WEBHOOKS_ENABLE` and authentication, webhooks. The extension is not settled, so its methods can change.',
    }),
    eventTypesFile: path({
      description:
        'A YAML or JSON file with more event types, in addition to the three of every server. The server reads it at the start.',
    }),
    eventCodes: Type.Enum(['auto', 'sketch', 'sep'], {
      default: 'auto',
      description:
        'Error codes of the extension Events. `sketch`: -32011 to -32015; `sep`: -32023 to -32027; `auto`: `sep` for clients that declare the extension, otherwise `sketch`.',
    }),
  }),
  a2a: group('Agents (/agents, /a2a)', {
    enable: flag(true, {
      description: 'Serves `/agents`, `/a2a`, the agent cards and the four agent tools of `/mcp`.',
    }),
    native: Type.Enum(['auto', 'off'], {
      default: 'auto',
      description:
        "`auto`: serves the calls of the official A2A clients, of A2A 1.0 and 0.3, and the gateway's own dialect; `off`: only the dialect.",
    }),
    taskIsolation: Type.Enum(['records', 'strict', 'off'], {
      default: 'records',
      description:
        'With authentication, a task of an agent belongs to the caller that began it. `records`: tasks without a record of their caller, begun by the agent itself or by an older version, are open to all callers; `strict`: they are hidden; `off`: callers share all tasks.',
    }),
    rootAgent: Type.String({
      default: '',
      pattern: '^(?:[a-z0-9][a-z0-9-]{0,126}[a-z0-9])?$',
      allowed: 'an agent_id; empty means none',
      description:
        'The id of an agent whose card `/.well-known/agent-card.json` shows while it is registered, for clients that read a card only at the root of a host. If empty, it shows the card of Signalbox.',
    }),
    agentTtlSeconds: integer(300, 0, 2_000_000, {
      description:
        'Time without a heartbeat or registration after which an agent is removed, in seconds; 0 means never.',
    }),
    idHoldSeconds: integer(86_400, 0, 31_536_000, {
      description:
        'Time for which the id of an expired agent is reserved for its owner, in seconds; 0 reserves no id. An Admin can delete the reservation.',
    }),
    log: Type.Enum(['auto', 'off'], {
      default: 'auto',
      description:
        '`auto`: keeps the answers of calls with an `Idempotency-Key`, and of all calls to agents with `a2a.durable`, `a2a.offline` or `a2a.pull`; `off`: keeps no answers, and refuses such cards.',
    }),
    logSeconds: integer(86_400, 60, 31_536_000, {
      description:
        'Time for which answers, events of tasks and idempotency keys are kept, in seconds; also for the keys of `/ce`.',
    }),
    logBytes: integer(1_073_741_824, 1_048_576, 1_099_511_627_776, {
      description: 'Maximum size of all kept answers and events, in bytes; the oldest are removed.',
    }),
    logRunsMax: integer(100_000, 1, 10_000_000, {
      description: 'Maximum number of calls in progress on each node whose answers are kept.',
    }),
    parkSeconds: integer(604_800, 0, 31_536_000, {
      description:
        'Time for which an expired agent with an inbox stays registered as offline, in seconds; 0 removes it when it expires.',
    }),
    defaultTimeoutSeconds: integer(300, 1, 2_000_000, {
      description: 'Time-out of a request to an agent if the request sets none, in seconds.',
    }),
    maxTimeoutSeconds: integer(3_600, 1, 2_000_000, {
      description:
        'Maximum time-out of a request to an agent, in seconds; larger ones are reduced to it. It must be at least `CONNECTORSA2_A_DEFAULT_TIMEOUT_SECONDS`.',
    }),
    maxAgents: count(0, { description: 'Maximum number of registered agents; 0 means no limit.' }),
    maxInstances: integer(32, 1, 1_000, { description: 'Maximum number of instances of one agent.' }),
    maxSseIdleSeconds: integer(300, 0, 2_000_000, {
      description:
        'Time without an event or a comment of the agent after which a stream ends, in seconds; 0 means never.',
    }),
    slowConsumerSeconds: integer(30, 1, 2_000_000, {
      description:
        'Time for which the client of a stream of an agent may stop reading, in seconds. Then the stream ends.',
    }),
    trustedOrigins: trustedOriginsSetting({
      description:
        'Browser origins that may call `/agents` and `/a2a`. `auto`: localhost, 127.0.0.1 and the bind address, on any port.',
    }),
    agentMaxResponseBytes: integer(10_485_760, 1_024, 536_870_912, {
      description: 'Maximum size of a response of an agent, and of an event of a stream, in bytes.',
    }),
    agentTlsSkipVerify: flag(false, {
      description:
        'Accepts every certificate of agents, which is for development only. The server logs a warning at each start.',
    }),
    agentMaxConcurrency: integer(100, 1, 1_000_000, {
      description:
        'Maximum number of requests and streams of one agent in progress, on each node. For an agent with instances, the limit applies to each instance.',
    }),
    agentUrlAllow: hosts({
      description: 'If set, agents can only have these hosts and addresses.',
    }),
    agentUrlDeny: hosts({
      description:
        'Hosts and addresses that agents cannot have; checked before the allow list. Link-local and cloud-metadata addresses are always refused.',
    }),
    agentCaFile: path({
      description:
        "A PEM file of certificate authorities for agents' certificates, in addition to the well-known ones.",
    }),
    cardKeysFile: path({
      description:
        'A PEM file or JSON Web Key Set with private keys of EC P-256 that sign agent cards. The first key signs; `/.well-known/jwks.json` has the public part of each. Cards are signed only if `PUBLIC_URL` is set. The server reads the file again when it changes.',
    }),
    agentProxyUrl: Type.String({
      default: '',
      secret: true,
      allowed: 'http://[user:password@]host[:port]; empty means none',
      description:
        'A forward proxy for all calls to agents: plain HTTP in absolute form, TLS by CONNECT. The server never shows it, because it can contain a password.',
    }),
    agentProxyUrlFile: path({
      description:
        'A file with that URL alone, instead of `CONNECTORSA2_A_AGENT_PROXY_URL`. The server reads it at the start.',
    }),
  }),
  ce: group('The CloudEvents connector (/ce)', {
    enable: flag(true, { description: 'Serves `/ce/*`.' }),
    trustedOrigins: trustedOriginsSetting({
      description:
        'Browser origins that may call `/ce/*`. `auto`: localhost, 127.0.0.1 and the bind address, on any port.',
    }),
    timeoutSeconds: integer(60, 1, 3_600, {
      description: 'Time-out of a command or query without the parameter `timeout`, in seconds.',
    }),
    maxSseConnections: count(0, { description: 'Maximum number of open subscriptions; 0 means no limit.' }),
    maxSseIdleSeconds: integer(300, 0, 2_000_000, {
      description: 'Time without a message after which a subscription ends, in seconds; 0 means never.',
    }),
  }),
})
