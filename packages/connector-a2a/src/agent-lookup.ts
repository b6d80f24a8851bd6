import type { AgentRegistry } from '@signalbox/registry'

/** What the gateway needs of the agent registry. */
export type AgentLookup = Pick<AgentRegistry, 'find' | 'get' | 'list' | 'onChange'>
