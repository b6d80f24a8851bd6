import type { AgentRegistry } from '@signalbox/registry'

/** What the gateway needs of the agent registry. */
export type AgentDirectory = Pick<AgentRegistry, 'find' | 'get' | 'list' | 'onChange'>
