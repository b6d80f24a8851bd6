import { ANONYMOUS } from '../caller.ts'
import { isReservedChannel } from '../channel.ts'
import type { SettleResult } from '../engine/queue-engine.ts'
import { isBrokerError } from '../errors.ts'
import type { Message, MessageInput, QueueDelivery, Tags } from '../message.ts'
import type { OpenLeases } from './open-leases.ts'
import { creationContext, hasCreationContext, SAMPLED } from './trace-context.ts'
import type { RemoteParent, Span, SpanKind, SpanLink, SpanParent, SpanStart, Tracing } from './tracing.ts'
import { MAX_LINKS } from './tracing.ts'

/** The tracing of a broker, and its open spans. */
export interface TracingParts {
  readonly tracing: Tracing
  readonly leases: OpenLeases
}

type OperationType = 'send' | 'receive' | 'process' | 'settle'

const NO_TAGS: Tags = {}

/** The spans of one caller's messages (OpenTelemetry semantic conventions for messaging). */
export class MessageSpans {
  readonly #tracing: Tracing
  readonly #leases: OpenLeases
  /** The span of the request; undefined if it is not recorded. */
  readonly #parent: SpanParent | undefined

  constructor({ tracing, leases }: TracingParts, parent: SpanParent | undefined) {
    this.#tracing = tracing
    this.#leases = leases
    this.#parent = parent
  }

  /**
   * Begins the span of a send. It is the creation context of the messages that bring none; a message that brings one
   * keeps it, and is linked.
   */
  send(channel: string, inputs: readonly Partial<MessageInput>[]): Span | undefined {
    if (this.#parent === undefined || typeof channel !== 'string' || isReservedChannel(channel)) return undefined
    const given = inputs.map((input) => input?.tags ?? NO_TAGS).filter(hasCreationContext)
    const links = given.slice(0, MAX_LINKS).flatMap(linkTo)
    const isFirst = given.length < inputs.length || inputs.length === 0
    const start = this.#start('send', 'send', isFirst ? 'producer' : 'client', channel)
    const count = inputs.length === 1 ? undefined : inputs.length
    return this.#parent.child({
      ...start,
      links,
      attributes: { ...start.attributes, 'messaging.batch.message_count': count },
    })
  }

  /** Begins the span of a copy of a message, in a new trace. @param sent The span in which the message was sent */
  copy(sent: Span, channel: string, id: string): Span | undefined {
    const start = this.#start('send', 'send', 'client', channel)
    const attributes = { ...start.attributes, 'messaging.message.id': id }
    return this.#tracing.begin({ ...start, attributes, links: [{ context: sent.context }] })
  }

  /** Reports deliveries of a queue: a `receive`, and for each recorded message a `process` until its settlement. */
  received(channel: string, deliveries: readonly QueueDelivery[], startedAt: number, leaseMs: number): void {
    if (isReservedChannel(channel)) return
    const receive = this.#receive(channel, deliveries, startedAt)
    receive?.end()
    const links = receive && [{ context: receive.context }]
    for (const { message, receipt } of deliveries) {
      if (this.#leases.full) return
      const span = this.process(channel, message, links)
      if (span !== undefined) this.#leases.add(receipt, span, channel, Date.now() + leaseMs)
    }
  }

  #receive(channel: string, deliveries: readonly QueueDelivery[], startedAt: number): Span | undefined {
    if (this.#parent === undefined) return undefined
    const start = this.#start('receive', 'receive', 'client', channel)
    const links = deliveries
      .slice(0, MAX_LINKS)
      .flatMap(({ message }) =>
        linkTo(message.tags).map(({ context }) => ({ context, attributes: { 'messaging.message.id': message.id } })),
      )
    const count = deliveries.length === 1 ? undefined : deliveries.length
    const attributes = { ...start.attributes, 'messaging.batch.message_count': count }
    return this.#parent.child({ ...start, attributes, links, startedAt })
  }

  /** Begins the span of a message that a receiver processes, in the trace of the message's sender. */
  process(
    channel: string,
    { id, clientId, tags }: Pick<Message, 'id' | 'clientId' | 'tags'>,
    links?: readonly SpanLink[],
  ): Span | undefined {
    if (isReservedChannel(channel)) return undefined
    const parent = creationParent({ clientId, tags })
    if (parent === undefined) return undefined
    const start = this.#start('process', 'process', 'consumer', channel)
    return this.#tracing.begin(
      { ...start, attributes: { ...start.attributes, 'messaging.message.id': id }, links },
      parent,
    )
  }

  /** Begins the span of a settlement. */
  settle(operation: 'ack' | 'nack' | 'extend', receipts: readonly string[]): Span | undefined {
    if (this.#parent === undefined || !Array.isArray(receipts)) return undefined
    const start = this.#start(operation, 'settle', 'client', this.#leases.queueOf(receipts))
    const count = receipts.length === 1 ? undefined : receipts.length
    return this.#parent.child({
      ...start,
      links: this.#leases.links(receipts),
      attributes: { ...start.attributes, 'messaging.batch.message_count': count },
    })
  }

  /** Reports a settlement, which ends the spans of its deliveries, or moves the ends of their leases. */
  settled(operation: 'ack' | 'nack' | 'extend', receipts: readonly string[], result: SettleResult, leaseMs = 0): void {
    if (operation === 'extend') this.#leases.extend(receipts, result, Date.now() + leaseMs)
    else this.#leases.settle(receipts, result, operation === 'nack' ? 'nack' : undefined)
  }

  #start(operation: string, type: OperationType, kind: SpanKind, channel: string | undefined): SpanStart {
    const template = channel === undefined ? undefined : this.#tracing.destinationTemplate(channel)
    return {
      name: template === undefined ? operation : `${operation} ${channel}`,
      kind,
      attributes: {
        'messaging.system': 'signalbox',
        'messaging.operation.name': operation,
        'messaging.operation.type': type,
        'messaging.destination.name': channel,
        // A name without wildcards is no template.
        'messaging.destination.template': template === channel ? undefined : template,
      },
    }
  }
}

/** Returns the recorded creation context of a message as the parent of a span; undefined without one. */
export function creationParent({ clientId, tags }: Pick<Message, 'clientId' | 'tags'>): RemoteParent | undefined {
  const context = hasCreationContext(tags) ? creationContext(tags) : undefined
  if (context === undefined || (context.flags & SAMPLED) === 0) return undefined
  return { context, isTrusted: clientId !== ANONYMOUS.clientId }
}

function linkTo(tags: Tags): readonly SpanLink[] {
  const context = hasCreationContext(tags) ? creationContext(tags) : undefined
  return context === undefined ? [] : [{ context }]
}

/** Ends a span with a result. @returns the result */
export function endWith<T>(span: Span, result: Promise<T>, isFault: boolean): Promise<T> {
  const failed = (error: unknown): void => {
    span.fail(isBrokerError(error) ? error.code : error instanceof Error ? error.name : 'INTERNAL', isFault)
    span.end()
  }
  result.then(() => span.end(), failed)
  return result
}
