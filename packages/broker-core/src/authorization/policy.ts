import { CHANNEL_TYPES } from '../channel.ts'
import type { Glob } from '../glob.ts'
import { coversGlob, globsOverlap, globText, matchesGlob, parseGlob } from '../glob.ts'

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

export type Effect = 'allow' | 'deny'

/** One rule of a policy. It matches a call if each of its four parts matches. */
export interface PolicyRule {
  /** The index in the policy, from 0. */
  readonly index: number
  readonly clients: readonly Glob[]
  readonly actions: ReadonlySet<PolicyAction>
  readonly patterns: ReadonlySet<ResourceType>
  readonly channels: readonly Glob[]
  readonly effect: Effect
}

/**
 * Rules in order: the first rule that matches a call decides; without a match the call is denied. Created by
 * `parsePolicy`.
 */
export interface Policy {
  readonly rules: readonly PolicyRule[]
}

/** The decision of a policy about a call. */
export interface Decision {
  readonly allowed: boolean
  /** The index of the rule that decided; undefined if none matched. */
  readonly rule: number | undefined
}

/** A rule as a policy file has it. */
export interface RuleText {
  readonly clients: readonly string[]
  readonly actions: readonly PolicyAction[]
  readonly patterns: readonly ResourceType[]
  readonly channels: readonly string[]
  readonly effect: Effect
}

/** Returns a rule as a policy file has it. Actions and patterns are listed one by one. */
export function ruleText({ clients, actions, patterns, channels, effect }: PolicyRule): RuleText {
  return {
    clients: clients.map(globText),
    actions: [...actions],
    patterns: [...patterns],
    channels: channels.map(globText),
    effect,
  }
}

/** A glob that matches every text. */
const EVERYTHING = parseGlob('*')

/** Returns the rules for this client, action and pattern, in order. */
export function rulesFor(
  { rules }: Policy,
  clientId: string,
  action: PolicyAction,
  type: ResourceType,
): readonly PolicyRule[] {
  return rules.filter(
    (rule) =>
      rule.actions.has(action) &&
      rule.patterns.has(type) &&
      rule.clients.some((client) => matchesGlob(client, clientId)),
  )
}

/** Returns the decision for one channel. */
export function decideChannel(rules: readonly PolicyRule[], channel: string): Decision {
  const rule = rules.find(({ channels }) => channels.some((glob) => matchesGlob(glob, channel)))
  return { allowed: rule?.effect === 'allow', rule: rule?.index }
}

/**
 * Returns the decision for all channels that a glob matches. All of them must be allowed, because a subscription with
 * wildcards sees every one. If the rules do not decide that, the call is denied, and the decision names the rule that
 * prevents it.
 */
export function decideAll(rules: readonly PolicyRule[], wanted: Glob): Decision {
  for (const { index, channels, effect } of rules) {
    if (effect === 'allow' && channels.some((glob) => coversGlob(glob, wanted))) return { allowed: true, rule: index }
    if (effect === 'deny' && channels.some((glob) => globsOverlap(glob, wanted))) return { allowed: false, rule: index }
  }
  return { allowed: false, rule: undefined }
}

/** Returns whether the rules allow any channel. False only if they deny every channel. */
export function mayAllow(rules: readonly PolicyRule[]): boolean {
  const denied: Glob[] = []
  for (const { channels, effect } of rules) {
    if (effect === 'deny') denied.push(...channels)
    else if (channels.some((glob) => !denied.some((earlier) => coversGlob(earlier, glob)))) return true
    if (denied.some((glob) => coversGlob(glob, EVERYTHING))) return false
  }
  return false
}
