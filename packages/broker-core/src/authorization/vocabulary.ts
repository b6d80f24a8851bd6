import { CHANNEL_TYPES } from '../channel.ts'

/** What a policy allows or denies a caller to do (S4). */
export const POLICY_ACTIONS = [
  'send',
  'receive',
  'peek',
  'read',
  'subscribe',
  'respond',
  'list',
  'manage',
  'call',
  'register',
] as const

export type PolicyAction = (typeof POLICY_ACTIONS)[number]

/** Resources that a rule applies to: channels of one type, or agents, named by their agent_id (S4). */
export const RESOURCE_TYPES = [...CHANNEL_TYPES, 'agents'] as const

export type ResourceType = (typeof RESOURCE_TYPES)[number]
