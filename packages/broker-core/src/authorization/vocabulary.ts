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

/** On what: the channels of one type, or agents, whose channel is their agent_id (S4). */
export const POLICY_PATTERNS = [...CHANNEL_TYPES, 'agents'] as const

export type PolicyPattern = (typeof POLICY_PATTERNS)[number]
