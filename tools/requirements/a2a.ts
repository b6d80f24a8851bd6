import type { Requirement } from './requirement.ts'
import { section } from './requirement.ts'

const RECORD = 'docs/decisions/0010-agent-gateway.md'

/** The decisions on the agent gateway. */
const DECIDED: Readonly<Record<string, string>> = {
  A1: 'GET /a2a/{agent_id} is 405 before authentication; a stream opened by GET without a valid token is 200 with -32010 as JSON',
  A2: 'params.configuration.timeout is the deadline of the call to the agent, capped; the Query waits 10 s longer; a value that is no positive number is -32602',
  A3: 'each outcome of a call has its code, message and data, the first row that fits',
  A4: "the agent's result or error comes back byte for byte, with the caller's own id",
  A5: "the caller's headers reach the agent, except those of the hop, of credentials and of the broker",
  A6: 'notifications are forwarded and answered 202 and empty, in every state of the agent',
  A7: 'GET /a2a/{agent_id}/stream sends the agent a message/stream built from the query',
  A8: 'three dialects of agent streams are read, and become task events',
  A9: 'a stream ends with exactly one terminal event, for every end of the agent',
  A10: 'a client that disconnects ends its stream at once, and the agent is notified',
  A11: 'streams flow at the speed of their clients, in bounded memory, and report interruptions',
  A12: "streams count towards their agent's concurrency; the deadline is for the headers, the idle limit for the rest",
  A13: 'an invalid or empty agent_id in the path is -32600',
  A14: "metrics count each request with agent, method, status and code; an agent's series are removed with it",
  A15: 'a request is sent to an agent once and never again',
  A16: 'a caller that disconnects does not end its call',
  A17: 'a compressed answer is refused',
  A18: 'a shutdown waits for calls, ends streams with an event, and answers calls that it cuts off',
  A19: 'requests count the brokers on their way, and those over 8 are refused',
  A20: "cards name the gateway's address and security, in the members of the A2A version that the client reads",
  A21: 'the operator can have cards signed, for the public URL alone, and change the keys without a gap',
  A28: 'calls are spread over the instances of an agent, and sent to another one only if nothing was sent',
  A29: 'a request for a task goes to the instance that began it',
  A30: 'an agent that speaks only HTTP+JSON of A2A 1.0 is called over it, and one with gRPC alone is refused',
  A40: 'with authentication, a task belongs to the caller that began it, on every node; the owner of the agent and an Admin may read and cancel it',
  A41: "an agent gets its own credentials, and a caller's only if it asks for them",
  A42: 'an official call without an id is answered, with the id null',
}

export const A2A: readonly Requirement[] = [
  ...Object.entries(DECIDED).map(([id, behavior]) => ({ id, source: RECORD, behavior })),
  ...section('GW', 'specification, "A2A endpoints" and "What the service does"', [
    'requests of every method are forwarded unchanged, and the return value comes back in result verbatim',
    'JSON-RPC batches are not supported',
    'GET /a2a/{agent_id} is always 405',
    'caller headers are forwarded as request tags a2a_hdr_*',
    "the agent always gets X-Broker-Caller-ID with the caller's identity",
    'notifications are forwarded and get no response',
    'metrics distinguish five methods; all others are unknown',
    'requests reach an agent through its virtual subscriber, for as long as it is registered',
    'message/stream opens a stream of events',
    'GET /a2a/{agent_id}/stream opens a stream of events',
  ]),
  ...section('CODE', 'specification, "JSON-RPC codes", the rows of agents', [
    '-32001: the agent did not respond within the timeout',
    '-32002: no agent is registered with the agent_id',
    '-32003: the agent rejected the request',
    '-32004: invalid response from the agent',
    '-32600: empty or invalid agent_id',
    '-32601 is not raised: every method is forwarded',
  ]),
  ...section('OUT', 'specification, "Transport versus application errors"', [
    'connection refused or DNS failure: not executed, `agent unreachable: …`',
    'HTTP timeout: not executed, `agent timeout`',
    'HTTP 502, 503, 504: not executed, `agent unavailable: …`',
    'a response larger than AgentMaxResponseBytes: not executed, `agent response too large`',
    'concurrency limit reached: not executed, `server busy: concurrency limit reached`',
    'HTTP 200 to 299: executed, the body is the response',
    'HTTP 400, 401, 403, 404, 409, 422, 500: executed, the body is the response',
  ]),
  ...section('EVT', 'specification, "Events"', [
    'task.status, task.artifact, task.done, task.error and message carry their envelope types; task.done and task.error are terminal',
    'each event has an event line and a data line, a JSON envelope with stream_id, type and payload',
    'the stream closes after MaxSSEIdleSeconds of idleness',
  ]),
  ...section('LIMIT', 'specification, "Limits", A2A configuration', [
    'DefaultTimeoutSeconds applies to requests without a timeout, MaxTimeoutSeconds caps the others',
    'AgentMaxResponseBytes is 10485760 by default',
    'AgentMaxConcurrency is 100 by default',
    'MaxSSEIdleSeconds is the idle time of streams',
    'AgentTLSSkipVerify is off by default, and skips the verification of agents',
  ]),
  ...section('CARD', 'specification, "Agent card endpoints"', [
    "/.well-known/agent-card.json is the platform's card, under the platform's own name, and public",
    "/a2a/{agent_id}/.well-known/agent-card.json is the agent's enriched card, 404 if absent, and public",
    'a card can be revalidated by its ETag',
  ]),
]
