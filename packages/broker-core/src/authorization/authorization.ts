import type { Caller } from '../caller.ts'
import { isWildcardPattern } from '../channel.ts'
import { patternGlob } from '../glob.ts'
import type { Decision, Policy, PolicyAction, PolicyRule, ResourceType } from './policy.ts'
import { decideAll, decideChannel, mayAllow, POLICY_ACTIONS, RESOURCE_TYPES, rulesFor } from './policy.ts'

/** The maximum numbers of cached decisions and callers. Beyond them the cache is emptied. */
const MAX_DECISIONS = 50_000
const MAX_CALLERS = 10_000

/** The longest time for which a change of the policy blocks the event loop without a pause, in ms. */
const SLICE_MS = 5

/** The rules that apply to one caller, action and resource type, and cached decisions by channel. */
interface Right {
  readonly rules: readonly PolicyRule[]
  /** `true` if the rules may allow any channel; undefined until a caller asks. */
  mayAllow?: boolean
  readonly decisions: Map<string, boolean>
}

/** Something that continues after it was allowed, such as a subscription. */
export interface Grant {
  /** Returns whether it is allowed now. */
  allowed(): boolean
  /** Ends it because it is no longer allowed. Called once. */
  revoke(): void
}

/**
 * The current policy, with a cache of its decisions. The policy can be replaced at any time: subscriptions that the new
 * one does not allow end.
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
   * Replaces the policy. New calls use it immediately. Running subscriptions are checked in slices, so that thousands
   * of subscriptions and rules do not block the event loop.
   */
  replace(policy: Policy): void {
    this.#policy = policy
    this.#forget()
    this.#recheck([...this.#grants], 0)
  }

  /** Revokes the grants that the current policy does not allow, starting at an index of the list. */
  #recheck(grants: readonly Grant[], from: number): void {
    const policy = this.#policy
    const until = performance.now() + SLICE_MS
    for (let at = from; at < grants.length; at++) {
      if (at > from && performance.now() >= until) {
        // After another replacement, that replacement checks all grants.
        setImmediate(() => policy === this.#policy && this.#recheck(grants, at))
        return
      }
      const grant = grants[at]
      if (grant === undefined || !this.#grants.has(grant) || grant.allowed()) continue
      this.#grants.delete(grant)
      try {
        grant.revoke()
      } catch {
        // An error while one grant ends must not keep the others running.
      }
    }
  }

  /** Returns whether the caller may perform the action on this channel. For agents, `channel` is the agent_id. */
  permits({ clientId }: Caller, action: PolicyAction, type: ResourceType, channel: string): boolean {
    const right = this.#right(clientId, action, type)
    const known = right.decisions.get(channel)
    if (known !== undefined) return known
    const { allowed } = decideChannel(right.rules, channel)
    if (++this.#decisions > MAX_DECISIONS) this.#forget()
    else right.decisions.set(channel, allowed)
    return allowed
  }

  /** Returns whether the caller may perform the action on every channel that a subscription pattern can match. */
  permitsAll(caller: Caller, action: PolicyAction, type: ResourceType, channels: string): boolean {
    if (!isWildcardPattern(channels)) return this.permits(caller, action, type, channels)
    return decideAll(this.#right(caller.clientId, action, type).rules, patternGlob(channels)).allowed
  }

  /**
   * Returns whether any channel can exist on which the caller may perform the action. False only if there can be none.
   */
  mayPermit({ clientId }: Caller, action: PolicyAction, type: ResourceType): boolean {
    const right = this.#right(clientId, action, type)
    return (right.mayAllow ??= mayAllow(right.rules))
  }

  /** Decides like {@link permitsAll}, and returns the deciding rule too. */
  explain({ clientId }: Caller, action: PolicyAction, type: ResourceType, channel: string): Decision {
    const { rules } = this.#right(clientId, action, type)
    return isWildcardPattern(channel) ? decideAll(rules, patternGlob(channel)) : decideChannel(rules, channel)
  }

  /** Watches something that continues; the returned function ends the watch. */
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
