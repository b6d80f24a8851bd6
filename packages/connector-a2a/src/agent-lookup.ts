import type { AgentRegistry } from '@signalbox/registry'

/** The methods of the agent registry that the gateway uses. */
export type AgentLookup = Pick<AgentRegistry, 'authorization' | 'find' | 'get' | 'list' | 'onChange'>
