import type { Requirement } from './requirement.ts'

function record(file: string, entries: Readonly<Record<string, string>>): readonly Requirement[] {
  return Object.entries(entries).map(([id, behavior]) => ({ id, source: `docs/decisions/${file}`, behavior }))
}

export const DECISIONS: readonly Requirement[] = [
  ...record('0001-json-rpc.md', {
    J1: 'an id is a string or an integer, echoed exactly; null, fractional, boolean, array or object is -32600',
    J2: 'duplicate envelope keys are -32600, params that are not an object -32602, batches -32600',
    J3: 'HTTP statuses: 400 for -32700 and -32600 on /mcp, 413 too large, 415 encoded, 403 origin, otherwise 200; JSON answers carry Content-Length',
    J4: 'nesting over 128, or over 100,000 keys on /mcp, is -32600; __proto__ is data',
  }),
  ...record('0002-mcp.md', {
    M1: 'initialize negotiates the version; every response carries MCP-Protocol-Version; an unknown one in the header is 400',
    M2: 'session ids are issued, accepted and echoed, and no state is kept per session; DELETE /mcp is 405',
    M3: 'GET /mcp is an SSE stream for clients that accept one, else 406; over the limit 503',
    M4: 'notifications and client responses are 202; a request method without id is 400 and not executed',
    M5: 'a client that disconnects ends its queue_receive and loses no message; other tools continue; notifications/cancelled is honored',
    M6: 'Accept is optional; answers are SSE with progress on request',
    M7: 'arguments are strict: a -32602 names every problem, and the call has no effect',
    M8: 'the reserved prefix is refused on every channel argument; wildcards and lists never show internal channels',
    M9: 'reading from the start, inclusive times, prompt receives, globs and prefixes, dead-lettering needs both arguments',
    M10: 'results carry isError, structuredContent as an object, base64 for bodies that are not text; tools carry schemas and annotations',
    M11: 'commands and queries wait for a subscriber until their time-out, then distinguish no subscriber from no answer',
    M12: 'agent_send without blocking returns when the request is accepted, and states this',
    M13: 'the tool time-out bounds only tools without their own wait; the tool shows an error of the agent',
    M14: 'a destructive read is settled after the response, or rejected (nacked) when the connection fails',
    M15: 'agent_send sends exactly the documented envelope',
    M16: 'a request of 2026-07-28 names its revision in _meta; its headers repeat parts of the body; its trace context goes to agents',
    M17: 'results of 2026-07-28 carry resultType, the server and cache hints; server/discover and subscriptions/listen',
    M18: 'each error of 2026-07-28 has its code and HTTP status; GET and DELETE are 405',
    M19: 'a call that waits for long becomes a task that its caller can read, watch and cancel on every node, until it expires',
    M20: 'an agent that asks for input asks the user of the client; a cancelled task is cancelled at the agent',
    M24: 'tools/list with all fifteen tools has at most 16 KiB',
    M25: 'with leases, queue_receive can lease messages, and three tools acknowledge, reject and extend them',
    M26: 'signalbox mcp connects a host over standard streams to the server, in both kinds of revision',
    M27: 'the MCP bundle runs the bridge without dependencies; server.json names it and the package',
    M28: 'the server card and the catalog are public, name the endpoint, and can be revalidated',
  }),
  ...record('0014-webhooks-and-events.md', {
    M29: 'clients list, poll and stream events; a cursor continues after a restart and on every node; truncated if retention passed it; the policy is checked for each event',
    M31: 'with responder tools, a model receives one command or query, answers it at any node, and waits for the next stored event',
    M32: 'with inbox tools, a model that is a pull agent takes one request, and writes its events and its end',
    M30: 'an endpoint that agrees gets each event at least once, signed, with its eventId as webhook-id, until its subscription ends',
  }),
  ...record('0003-channels.md', {
    C1: 'the rules of channel names; created on first use; five separate name spaces',
    C2: 'queues are first in first out, nacks return to their place, expired messages are counted and removed, dead letters carry tags',
    C3: 'is_active, incoming and outgoing',
    C4: 'limits on queues, channels and message sizes, with their codes',
    C5: 'message_id makes a send idempotent for two minutes',
  }),
  ...record('0004-security.md', {
    S1: 'bearer tokens: one key source, explicit algorithms, exp, leeway, issuer and audience, crit, one header, a bounded cache',
    S2: 'the claims that name the caller, and its roles',
    S3: 'roles ReadOnly < ReadWrite < Admin; no role or an unknown one grants nothing',
    S4: 'a policy of ordered rules controls the actions of callers; reloaded on change; each protocol has its own denial',
    S5: 'the order of checks: preflight, public routes, origin, authentication, body',
    S6: 'the origins that auto, * and a list allow',
    S7: 'the listeners bind to loopback by default, and a wider bind without authentication warns',
    S8: 'TLS 1.2 or newer, mutual TLS, certificates reloaded on change, slow clients bounded',
    S9: 'event streams end when the token that opened them expires',
    S10: 'the OAuth mode: its settings, the metadata of the resource, and 401 with a challenge for every request without a valid token',
    S11: 'scopes restrict callers in addition to the policy; 403 names the missing ones, only if they would help',
    S12: 'in the OAuth mode the user names the caller before the program, and roles need signalbox:manage',
  }),
]
