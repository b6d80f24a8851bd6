import { randomUUID } from 'node:crypto'

import type { Caller } from '../caller.ts'
import { isReservedChannel } from '../channel.ts'
import type { Engine } from '../engine/engine.ts'
import { isBrokerError } from '../errors.ts'
import { Pace } from '../in-turns.ts'
import { queueTags } from '../message-tags.ts'
import type { OutgoingMessage } from '../message.ts'
import { contentOf } from '../message.ts'
import type { Observers } from '../observer.ts'
import { checkBodies } from '../settings/schema/check-body.ts'
import type { MessageSpans } from '../tracing/message-spans.ts'
import type { Span } from '../tracing/tracing.ts'
import type { RoutingTable } from './routing-table.ts'
import type { RoutingFailure, RoutingPlace } from './routing.ts'
import type { RoutableType, RoutingRule } from './rule.ts'

/** The maximum length of a chain of copies. */
export const MAX_HOPS = 16

/** The maximum number of copies of one message. */
export const MAX_COPIES = 256

/**
 * The queue options of a copy: immediately visible, no expiry and no dead-letter queue, because those options are meant
 * for one queue.
 */
const PLAIN = { delayMs: 0, expirationMs: 0, maxReceiveCount: 0, deadLetterQueue: '' } as const

/** All messages share the time for CESQL conditions: senders choose the texts that these read. */
const pace = new Pace()

/** The parts of a sender's handle that routing needs. */
export interface CopySender {
  readonly engine: Engine
  readonly observers: Observers
  readonly caller: Caller
  readonly spans?: MessageSpans | undefined
  /** Runs a call that creates the channel if it does not exist. @throws BrokerError CALLER_LIMIT */
  creating<T>(type: RoutableType, channel: string, work: () => Promise<T>): Promise<T>
}

/** A message that the engine has accepted. */
export interface AcceptedMessage extends RoutingPlace {
  /** With the id by which the engine recognizes a repeated send, if there is one. */
  readonly message: OutgoingMessage & { readonly deduplicationId?: string | undefined }
  /** The message's id. For a duplicate, the id of the first send. */
  readonly id: string
  /** `true` if the engine had stored the message before. */
  readonly duplicate: boolean
  /** The span of the send, if it is recorded. */
  readonly span?: Span | undefined
}

/** A channel that holds the message or a copy of it. */
interface RouteStep extends RoutingPlace {
  readonly message: OutgoingMessage
  readonly hops: number
  /** The channel that it was copied from. */
  readonly before?: RouteStep
}

/** A copy to make. */
interface Plan {
  readonly rule: number
  readonly from: RouteStep
  readonly to: RoutingPlace
}

/**
 * Copies an accepted message to the targets of every rule that matches it, and the copies in the same way. Resolves
 * when all copies are durable; never rejects: failures are reported to the observers. Internal channels are not routed.
 */
export function routeMessage(table: RoutingTable, sender: CopySender, accepted: AcceptedMessage): Promise<void> {
  if (isReservedChannel(accepted.channel)) return Promise.resolve()
  return new Journey(table, sender, accepted).run()
}

/**
 * The routing of one message. The state that stops cycles is kept here and not in the message, because all copies are
 * made before the sender gets its answer.
 */
class Journey {
  readonly #table: RoutingTable
  readonly #sender: CopySender
  readonly #origin: AcceptedMessage
  /** The channels that hold the message or are about to. Each gets one copy. */
  readonly #reached = new Set<string>()
  /** The indexes of the rules that matched. */
  readonly #matched = new Set<number>()
  /** The indexes of the rules that could not be evaluated. Each is reported once. */
  readonly #unclear = new Set<number>()
  #copies = 0

  constructor(table: RoutingTable, sender: CopySender, origin: AcceptedMessage) {
    this.#table = table
    this.#sender = sender
    this.#origin = origin
  }

  /**
   * Copies in rounds, so that copies with the same number of hops are written together. Starts to write immediately,
   * unless conditions take long.
   */
  async run(): Promise<void> {
    const { type, channel, message } = this.#origin
    this.#reached.add(address(this.#origin))
    let round: readonly RouteStep[] = [{ type, channel, message, hops: 0 }]
    while (round.length > 0) {
      const plans: Plan[] = []
      for (const step of round) {
        for (const rule of this.#table.rules) {
          while (pace.isOver) await pace.rest()
          this.#plan(rule, step, plans)
        }
      }
      const steps = await Promise.all(plans.map((plan) => this.#copy(plan)))
      round = steps.filter((step) => step !== undefined)
    }
  }

  /**
   * Plans the copies that a rule makes of one message. The targets depend on the tags, which copies share: after a
   * match, further matches would lead to the same channels, so the rule is skipped. A rule that could not be evaluated
   * is tried again, because the result may depend on the channel.
   */
  #plan(rule: RoutingRule, from: RouteStep, plans: Plan[]): void {
    const { index } = rule
    if (this.#matched.has(index)) return
    const evaluate = () => rule.matches(from.type, from.channel, from.message)
    const matches = rule.keyType === 'cesql' ? pace.run(evaluate) : evaluate()
    if (typeof matches === 'string') {
      if (!this.#unclear.has(index)) this.#fail(index, from, 'condition', matches)
      this.#unclear.add(index)
    } else if (matches) {
      this.#matched.add(index)
      for (const to of this.#targets(rule, from)) {
        if (this.#admits(index, from, to)) plans.push({ rule: index, from, to })
      }
    }
  }

  /** Returns the rule's targets for this message. Returns none if one of them has no valid name. */
  #targets(rule: RoutingRule, from: RouteStep): readonly RoutingPlace[] {
    const places: RoutingPlace[] = []
    for (const { type, channel } of rule.targets) {
      const resolved = channel.resolve(from.message.tags)
      if ('problem' in resolved) {
        this.#fail(rule.index, from, resolved.problem.reason, resolved.problem.detail)
        return []
      }
      places.push({ type, channel: resolved.channel })
    }
    return places
  }

  /** Returns whether to make the copy, and if so counts it. */
  #admits(rule: number, from: RouteStep, to: RoutingPlace): boolean {
    const target = address(to)
    if (this.#reached.has(target)) {
      // A rule for many channels may match its own target: archives are written that way, so it is no cycle.
      if (target !== address(from) && hasPassed(from, target)) {
        this.#fail(rule, from, 'cycle', `the message has been on ${target} before`, to)
      }
      return false
    }
    if (from.hops >= MAX_HOPS) {
      this.#fail(rule, from, 'hops', `the message was copied ${MAX_HOPS} times in a row`, to)
      return false
    }
    if (this.#copies >= MAX_COPIES) {
      this.#fail(rule, from, 'copies', `the message has ${MAX_COPIES} copies`, to)
      return false
    }
    this.#reached.add(target)
    this.#copies += 1
    return true
  }

  async #copy({ rule, from, to }: Plan): Promise<RouteStep | undefined> {
    const { observers, caller } = this.#sender
    const content = contentOf(from.message)
    const tags = to.type === 'queues' ? queueTags(content.tags) : content.tags
    const message: OutgoingMessage = { ...content, id: randomUUID(), tags }
    const hops = from.hops + 1
    const sent = this.#origin.span
    const span = sent && this.#sender.spans?.copy(sent, to.channel, message.id)
    try {
      const checks = checkBodies(this.#sender.engine.settings, to.type, to.channel, [message])
      if (checks !== undefined) await checks
      if (await this.#sender.creating(to.type, to.channel, () => this.#write(to, message))) {
        observers.accepted(to.type, to.channel, caller, message)
        const { type, channel } = from
        observers.routed({ rule, from: { type, channel }, to, hops, message }, caller)
      }
      return { ...to, message, hops, before: from }
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error)
      const code = isBrokerError(error) ? error.code : undefined
      const isSchema = code === 'SCHEMA_MISMATCH' || code === 'SETTING_UNSUPPORTED'
      this.#fail(rule, from, isSchema ? 'schema' : 'engine', detail, to, code)
      span?.fail(code ?? 'INTERNAL')
      return undefined
    } finally {
      span?.end()
    }
  }

  /**
   * Writes a copy; returns false if it exists. A duplicate is routed again, because a crash may have interrupted the
   * routing of the first send: missing copies are made. Existing copies are recognized by the id of the first send,
   * which no sender can choose. Plain events are not published again.
   */
  async #write({ type, channel }: RoutingPlace, message: OutgoingMessage): Promise<boolean> {
    const { queues, eventsStore, events } = this.#sender.engine
    const { id, duplicate, message: original } = this.#origin
    const deduplicationId = original.deduplicationId === undefined ? undefined : `routed ${id}`
    if (type === 'events') {
      if (!duplicate) await events.publish(channel, message)
      return !duplicate
    }
    const stored =
      type === 'queues'
        ? await queues.send(channel, { ...message, ...PLAIN, deduplicationId })
        : await eventsStore.append(channel, { ...message, deduplicationId })
    return !stored.duplicate
  }

  #fail(
    rule: number,
    from: RouteStep,
    reason: RoutingFailure['reason'],
    detail: string,
    to?: RoutingPlace,
    code?: RoutingFailure['code'],
  ): void {
    // Problems of the table were reported with the first send.
    if (this.#origin.duplicate && reason !== 'engine') return
    const { type, channel, message } = from
    const failure: RoutingFailure = {
      rule,
      from: { type, channel },
      reason,
      detail,
      message,
      to,
      code,
    }
    this.#sender.observers.routingFailed(failure, this.#sender.caller)
  }
}

function address({ type, channel }: { readonly type: RoutableType; readonly channel: string }): string {
  return `${type}:${channel}`
}

/** Returns whether the message was on the target before it reached this channel. */
function hasPassed(step: RouteStep, target: string): boolean {
  for (let at: RouteStep | undefined = step; at; at = at.before) {
    if (address(at) === target) return true
  }
  return false
}
