import type { Glob } from '../glob.ts'
import { coversGlob, globsOverlap, matchesGlob, parseGlob } from '../glob.ts'
import type { PolicyAction, ResourceType } from './vocabulary.ts'

export type Effect = 'allow' | 'deny'

/** One rule of a policy. It matches a call when each of its four parts does. */
export interface PolicyRule {
  /** Its place in the policy, from 0. */
  readonly index: number
  readonly clients: readonly Glob[]
  readonly actions: ReadonlySet<PolicyAction>
  readonly patterns: ReadonlySet<ResourceType>
  readonly channels: readonly Glob[]
  readonly effect: Effect
}

/** Rules in their order: the first that matches a call decides; where none does, it is denied. Made by `parsePolicy`. */
export interface Policy {
  readonly rules: readonly PolicyRule[]
}

/** What a policy says to a call. */
export interface Decision {
  readonly allowed: boolean
  /** Index of the rule that decided; undefined when none matched. */
  readonly rule: number | undefined
}

/** Whatever a glob can match. */
const EVERYTHING = parseGlob('*')

/** The rules that speak of this client, action and pattern, in their order. */
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

/** The decision for one channel. */
export function decideChannel(rules: readonly PolicyRule[], channel: string): Decision {
  const rule = rules.find(({ channels }) => channels.some((glob) => matchesGlob(glob, channel)))
  return { allowed: rule?.effect === 'allow', rule: rule?.index }
}

/**
 * The decision for all channels that a glob matches, of which none may be denied: a subscription with wildcards sees them
 * all. Where the rules leave that open it is denied, and the rule is the one that stands in the way.
 */
export function decideAll(rules: readonly PolicyRule[], wanted: Glob): Decision {
  for (const { index, channels, effect } of rules) {
    if (effect === 'allow' && channels.some((glob) => coversGlob(glob, wanted))) return { allowed: true, rule: index }
    if (effect === 'deny' && channels.some((glob) => globsOverlap(glob, wanted))) return { allowed: false, rule: index }
  }
  return { allowed: false, rule: undefined }
}

/** Whether there may be a channel that the rules allow: false only when they deny every one. */
export function mayAllow(rules: readonly PolicyRule[]): boolean {
  const denied: Glob[] = []
  for (const { channels, effect } of rules) {
    if (effect === 'deny') denied.push(...channels)
    else if (channels.some((glob) => !denied.some((earlier) => coversGlob(earlier, glob)))) return true
    if (denied.some((glob) => coversGlob(glob, EVERYTHING))) return false
  }
  return false
}
