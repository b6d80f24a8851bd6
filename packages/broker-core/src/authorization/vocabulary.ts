import { CHANNEL_TYPES } from '../channel.ts'

/** The actions that a policy allows or denies. */
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

/** The resources that a rule applies to: channels of one type, or agents, named by their agent_id. */
export const RESOURCE_TYPES = [...CHANNEL_TYPES, 'agents'] as const

export type ResourceType = (typeof RESOURCE_TYPES)[number]
