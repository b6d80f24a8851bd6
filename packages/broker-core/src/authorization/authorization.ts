import type { Caller } from '../caller.ts'
import { isWildcardPattern } from '../channel-pattern.ts'
import { patternGlob } from '../glob.ts'
import type { Decision, Policy, PolicyRule } from './policy.ts'
import { decideAll, decideChannel, mayAllow, rulesFor } from './policy.ts'
import type { PolicyAction, ResourceType } from './vocabulary.ts'
import { POLICY_ACTIONS, RESOURCE_TYPES } from './vocabulary.ts'

/** The most decisions that are remembered, and the most callers. Past them it begins anew. */
const MAX_DECISIONS = 50_000
const MAX_CALLERS = 10_000

/** How long the event loop is held at a time when a new policy is put in force, in milliseconds. */
const SLICE_MS = 5

/** What one caller may do in one way on one pattern: the rules that speak of it, and what they said lately. */
interface Right {
  readonly rules: readonly PolicyRule[]
  readonly decisions: Map<string, boolean>
}

/** Something that goes on after it was allowed, such as a subscription. */
export interface Grant {
  /** Whether it is allowed now. */
  allowed(): boolean
  /** Ends it: it is not allowed any more. Called once. */
  revoke(): void
}

/**
 * The policy in force (S4), and what it said lately. It may be replaced at any time: subscriptions that the new one does
 * not allow end.
 */
export class Authorization {
  #policy: Policy
  #rights = new Map<string, (Right | undefined)[]>()
  #decisions = 0
  readonly #grants = new Set<Grant>()

  constructor(policy: Policy) {
    this.#policy = policy
  }

  get policy(): Policy {
    return this.#policy
  }

  /**
   * Puts another policy in force. New calls obey it at once; what goes on is looked at in slices, so that thousands of
   * subscriptions and rules do not hold up the event loop.
   */
  replace(policy: Policy): void {
    this.#policy = policy
    this.#forget()
    this.#recheck([...this.#grants], 0)
  }

  /** Revokes what the policy in force does not allow, from one place in the list on. */
  #recheck(grants: readonly Grant[], from: number): void {
    const policy = this.#policy
    const until = performance.now() + SLICE_MS
    for (let at = from; at < grants.length; at++) {
      if (at > from && performance.now() >= until) {
        // Another policy looks at all of them itself.
        setImmediate(() => policy === this.#policy && this.#recheck(grants, at))
        return
      }
      const grant = grants[at]
      if (grant === undefined || !this.#grants.has(grant) || grant.allowed()) continue
      this.#grants.delete(grant)
      try {
        grant.revoke()
      } catch {
        // One that does not end in order must not keep the others going.
      }
    }
  }

  /** Whether the caller may do this on this channel; for agents it is the agent_id. */
  permits({ clientId }: Caller, action: PolicyAction, type: ResourceType, channel: string): boolean {
    const right = this.#right(clientId, action, type)
    const known = right.decisions.get(channel)
    if (known !== undefined) return known
    const { allowed } = decideChannel(right.rules, channel)
    if (++this.#decisions > MAX_DECISIONS) this.#forget()
    else right.decisions.set(channel, allowed)
    return allowed
  }

  /** Whether the caller may do this on every channel that a subscription pattern can match. */
  permitsAll(caller: Caller, action: PolicyAction, type: ResourceType, channels: string): boolean {
    if (!isWildcardPattern(channels)) return this.permits(caller, action, type, channels)
    return decideAll(this.#right(caller.clientId, action, type).rules, patternGlob(channels)).allowed
  }

  /** Whether there may be a channel on which the caller may do this: false only when there is none. */
  mayPermit({ clientId }: Caller, action: PolicyAction, type: ResourceType): boolean {
    return mayAllow(this.#right(clientId, action, type).rules)
  }

  /** The same as {@link permitsAll}, with the rule that decides. */
  explain({ clientId }: Caller, action: PolicyAction, type: ResourceType, channel: string): Decision {
    const { rules } = this.#right(clientId, action, type)
    return isWildcardPattern(channel) ? decideAll(rules, patternGlob(channel)) : decideChannel(rules, channel)
  }

  /** Looks after something that goes on; the returned function ends that. */
  watch(grant: Grant): () => void {
    this.#grants.add(grant)
    return () => void this.#grants.delete(grant)
  }

  #right(clientId: string, action: PolicyAction, type: ResourceType): Right {
    let rights = this.#rights.get(clientId)
    if (rights === undefined) {
      if (this.#rights.size >= MAX_CALLERS) this.#forget()
      this.#rights.set(clientId, (rights = []))
    }
    const slot = POLICY_ACTIONS.indexOf(action) * RESOURCE_TYPES.length + RESOURCE_TYPES.indexOf(type)
    return (rights[slot] ??= { rules: rulesFor(this.#policy, clientId, action, type), decisions: new Map() })
  }

  #forget(): void {
    this.#rights = new Map()
    this.#decisions = 0
  }
}
