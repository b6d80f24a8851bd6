import { randomUUID } from 'node:crypto'

import type { Caller } from '../caller.ts'
import { isReservedChannel } from '../channel.ts'
import { queueTags } from '../dead-letter-tags.ts'
import type { Engine } from '../engine.ts'
import { isBrokerError } from '../errors.ts'
import type { OutgoingMessage } from '../message.ts'
import type { Observers } from '../observer.ts'
import type { RoutingFailure, RoutingPlace } from './report.ts'
import type { RoutingTable } from './routing-table.ts'
import type { RoutableType, RoutingRule } from './rule.ts'

/** How many copies may lie one behind the other. */
export const MAX_HOPS = 16

/** How many copies one message may have in all. */
export const MAX_COPIES = 256

/** A copy in a queue is visible at once, does not expire, and has no dead-letter queue: those are wishes for one queue. */
const PLAIN = { delayMs: 0, expirationMs: 0, maxReceiveCount: 0, deadLetterQueue: '' } as const

/** What the routing of a message needs of the handle that it was sent through. */
export interface CopySender {
  readonly engine: Engine
  readonly observers: Observers
  readonly caller: Caller
  /** Runs what creates the channel when there is none. @throws BrokerError CALLER_LIMIT */
  creating<T>(type: RoutableType, channel: string, work: () => Promise<T>): Promise<T>
}

/** A message that the engine has accepted. */
export interface AcceptedMessage extends RoutingPlace {
  readonly message: OutgoingMessage
  /** The message's id; that of the first send when this one was a duplicate. */
  readonly id: string
  /** True when the engine had it already (C5). */
  readonly duplicate: boolean
}

/** Where a message, or a copy of it, has come to. */
interface Stop extends RoutingPlace {
  readonly message: OutgoingMessage
  readonly hops: number
  /** Where it was copied from. */
  readonly before?: Stop
}

/** A copy to be made. */
interface Plan {
  readonly rule: number
  readonly from: Stop
  readonly to: RoutingPlace
}

/**
 * Copies an accepted message to the targets of every rule that matches it, and the copies likewise. Resolves when all
 * copies are durable and never rejects: what fails is told to the observers. Internal channels take no part.
 */
export function routeMessage(table: RoutingTable, sender: CopySender, accepted: AcceptedMessage): Promise<void> {
  if (isReservedChannel(accepted.channel)) return Promise.resolve()
  return new Journey(table, sender, accepted).run()
}

/**
 * The way of one message. All that it needs to stop cycles is kept here and not in the message, because the whole way is
 * gone before the sender has its answer.
 */
class Journey {
  readonly #table: RoutingTable
  readonly #sender: CopySender
  readonly #origin: AcceptedMessage
  /** Every channel that holds the message, or is about to: none gets it twice. */
  readonly #reached = new Set<string>()
  /** The rules that have matched, by index. */
  readonly #matched = new Set<number>()
  /** The rules that could not tell, which is told once. */
  readonly #unclear = new Set<number>()
  #copies = 0

  constructor(table: RoutingTable, sender: CopySender, origin: AcceptedMessage) {
    this.#table = table
    this.#sender = sender
    this.#origin = origin
  }

  /** Goes on in waves, so that copies of the same distance are written together, and begins to write at once. */
  async run(): Promise<void> {
    const { type, channel, message } = this.#origin
    this.#reached.add(address(this.#origin))
    let wave: readonly Stop[] = [{ type, channel, message, hops: 0 }]
    while (wave.length > 0) {
      const stops = await Promise.all(wave.flatMap((stop) => this.#plan(stop)).map((plan) => this.#copy(plan)))
      wave = stops.filter((stop) => stop !== undefined)
    }
  }

  /**
   * A rule's targets follow from the tags, which copies share: where it has matched once, every later match would only lead
   * to the same channels, so it is not asked again. One that could not tell is asked again, as that may hang on the channel.
   */
  #plan(from: Stop): readonly Plan[] {
    const plans: Plan[] = []
    for (const rule of this.#table.rules) {
      const { index } = rule
      if (this.#matched.has(index)) continue
      const matches = rule.matches(from.type, from.channel, from.message)
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
    return plans
  }

  /** The rule's targets for this message: all of them, or none when one has no valid name. */
  #targets(rule: RoutingRule, from: Stop): readonly RoutingPlace[] {
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

  /** Whether the copy is to be made; if so it is taken as made. */
  #admits(rule: number, from: Stop, to: RoutingPlace): boolean {
    const target = address(to)
    if (this.#reached.has(target)) {
      // That a rule for many channels also matches its own target is how archives are written, and no mistake.
      if (target !== address(from) && cameBy(from, target)) {
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

  async #copy({ rule, from, to }: Plan): Promise<Stop | undefined> {
    const { observers, caller } = this.#sender
    const { clientId, body, metadata } = from.message
    const tags = to.type === 'queues' ? queueTags(from.message.tags) : from.message.tags
    const message: OutgoingMessage = { id: randomUUID(), clientId, body, metadata, tags }
    const hops = from.hops + 1
    try {
      if (await this.#sender.creating(to.type, to.channel, () => this.#write(to, message))) {
        observers.accepted(to.type, to.channel, caller, message)
        const { type, channel } = from
        observers.routed({ rule, from: { type, channel }, to, hops, message }, caller)
      }
      return { ...to, message, hops, before: from }
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error)
      this.#fail(rule, from, 'engine', detail, to, isBrokerError(error) ? error : undefined)
      return undefined
    }
  }

  /**
   * Writes a copy; false when it was there already. A duplicate goes the way of its first send again, because that may
   * have been cut short by a crash before the sender had its answer: copies that are missing are made, and those that
   * are there are told by the id of the first send, which no sender can choose. Plain events are not published again.
   */
  async #write({ type, channel }: RoutingPlace, message: OutgoingMessage): Promise<boolean> {
    const { queues, eventsStore, events } = this.#sender.engine
    const { id, duplicate, message: original } = this.#origin
    const again = original.tags['message_id'] ? { deduplicationId: `routed ${id}` } : {}
    if (type === 'events') {
      if (!duplicate) await events.publish(channel, message)
      return !duplicate
    }
    const stored =
      type === 'queues'
        ? await queues.send(channel, { ...message, ...PLAIN, ...again })
        : await eventsStore.append(channel, { ...message, ...again })
    return !stored.duplicate
  }

  #fail(
    rule: number,
    from: Stop,
    reason: RoutingFailure['reason'],
    detail: string,
    to?: RoutingPlace,
    error?: { readonly code: RoutingFailure['code'] },
  ): void {
    // Whatever is wrong with the table was told when the message came first.
    if (this.#origin.duplicate && reason !== 'engine') return
    const { type, channel, message } = from
    const failure: RoutingFailure = {
      rule,
      from: { type, channel },
      reason,
      detail,
      message,
      ...(to ? { to } : {}),
      ...(error?.code ? { code: error.code } : {}),
    }
    this.#sender.observers.routingFailed(failure, this.#sender.caller)
  }
}

function address({ type, channel }: { readonly type: RoutableType; readonly channel: string }): string {
  return `${type}:${channel}`
}

/** Whether the message was on the target on its way to where it is. */
function cameBy(stop: Stop, target: string): boolean {
  for (let at: Stop | undefined = stop; at; at = at.before) {
    if (address(at) === target) return true
  }
  return false
}
