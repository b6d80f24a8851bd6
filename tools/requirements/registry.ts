import type { Requirement } from './requirement.ts'
import { section } from './requirement.ts'

const REGISTRY_DECISIONS: Readonly<Record<string, string>> = {
  R1: '400, 403, 404 and 409 are {error, message, details}; an answer lists all problems of a card; a card over 64 KiB is 400',
  R2: 'timestamps are ISO 8601 UTC with milliseconds; unknown fields are kept, server-set fields of a caller ignored',
  R3: 'skill_tags matches any of the tags, limit is 1 or more or 400, the order is by agent_id',
  R4: 'only the owner or an Admin registers again, deregisters or heartbeats; an Admin keeps registered_by; heartbeat for an unknown agent is 400',
  R5: 'an agent that is silent for the TTL is removed everywhere, once, and counted; a restart restarts the clock',
  R6: 'heartbeats replicate at most every fifth of the TTL, and start-up follows the number of agents',
  R7: 'MaxAgents applies to the cluster: the later of two registrations that exceed it is removed',
  R8: 'agent addresses are checked at registration and when connecting; link-local and metadata are always refused',
  R9: 'a lookup that misses locally asks the engine before it answers; AgentMaxConcurrency is per serving node',
  R20: 'an agent that is probed lives while its card can be read, and its changes are followed',
  R10: 'with A2A disabled, /a2a, /agents and the agent tools do not exist',
  R11: 'a caller owns a bounded number of agents',
  R12: 'an agent can have instances, each with its own url and liveness; a registration is meant by instance_id or url',
}

export const REGISTRY: readonly Requirement[] = [
  ...section('AGENT', 'specification, "Agent card"', [
    'agent_id is required: 2 to 128 characters of the given pattern',
    'name is required, at most 256 characters',
    'description has at most 2048 characters, version at most 64',
    'url is required: an absolute http or https URL of at most 2048 characters',
    'capabilities and metadata are objects of any content',
    'skills is an array of skills, each with id and name, and maybe description and tags',
    'defaultInputModes, defaultOutputModes and protocolVersions are arrays of strings',
    'supportedInterfaces, securitySchemes and security are any JSON, kept as it is',
    'protocolVersions is ["1.0"] unless given',
    'registered_by is set by the server from the caller',
    'last_seen is set by the server at each heartbeat and registration',
    'registered_at is set by the server at the first registration and preserved across others',
  ]),
  ...section('STATE', 'specification, "States and transitions"', [
    'a valid card of an agent_id that is free registers it, with registered_by, registered_at and last_seen',
    'the same principal may register its agent again, and registered_at is preserved',
    'a heartbeat refreshes liveness',
    'deregistering makes the agent not registered',
  ]),
  ...section('REG', 'specification, "Registry endpoints", "HTTP status codes" and A2A configuration', [
    'POST /agents/register answers 200 with the enriched card, 400 for a bad card, 403 for the agent of another, 409 over MaxAgents',
    'GET /agents answers 200 with a bare array of cards, by skill_tags and limit',
    'GET /agents/{agent_id} answers 200 with the card, or 404',
    'POST /agents/deregister answers 200 with ok, or 404',
    'DELETE /agents/{agent_id} answers 200 with ok, or 404',
    'POST /agents/heartbeat answers 200 with ok, or 400',
    'the operations register, deregister, heartbeat and expire are counted by how they ended',
    'AgentTTLSeconds is 300 unless set; MaxAgents 0 is unlimited',
    'authentication failures are 401',
  ]),
  ...Object.entries(REGISTRY_DECISIONS).map(([id, behavior]) => ({
    id,
    source: 'docs/decisions/0009-registry.md',
    behavior,
  })),
]
