/** What a queue is, as plainly as it can be said: the model that the engine is held against. */

export interface ModelSend {
  readonly id: string
  readonly delayMs: number
  readonly expirationMs: number
  readonly maxReceiveCount: number
  readonly deadLetterQueue: string
  readonly deduplicationId: string | undefined
}

export interface ModelMessage {
  readonly id: string
  readonly sequence: number
  dueAt: number
  /** 0 means never. */
  readonly expiresAt: number
  readonly maxReceiveCount: number
  readonly deadLetterQueue: string
  receiveCount: number
  leased: boolean
}

export interface ModelLease {
  readonly queue: string
  /** The queue's life: a deleted queue takes its leases along. */
  readonly life: ModelQueue
  readonly message: ModelMessage
}

export interface ModelResult {
  readonly id: string
  readonly sequence: number
  readonly duplicate: boolean
}

const DEDUPLICATION_MS = 120_000

export class ModelQueue {
  messages: ModelMessage[] = []
  lastSequence = 0
  incoming = 0
  outgoing = 0
  deadLettered = 0
  readonly sent = new Map<string, { readonly id: string; readonly sequence: number; readonly at: number }>()
}

export class QueueModel {
  readonly #queues = new Map<string, ModelQueue>()
  /** Milliseconds; due and expiry times never meet it exactly. */
  clock: number

  constructor(clock: number) {
    this.clock = clock
  }

  exists(queue: string): boolean {
    return this.#queues.has(queue)
  }

  #queue(name: string): ModelQueue {
    const existing = this.#queues.get(name)
    if (existing) return existing
    const queue = new ModelQueue()
    this.#queues.set(name, queue)
    return queue
  }

  #expired(message: ModelMessage): boolean {
    return message.expiresAt !== 0 && message.expiresAt <= this.clock
  }

  send(name: string, sends: readonly ModelSend[]): readonly ModelResult[] {
    const queue = this.#queue(name)
    return sends.map((send) => {
      const { id, deduplicationId } = send
      const first = deduplicationId === undefined ? undefined : queue.sent.get(deduplicationId)
      if (first && this.clock - first.at < DEDUPLICATION_MS) {
        return { id: first.id, sequence: first.sequence, duplicate: true }
      }
      const sequence = this.#place(queue, {
        id,
        dueAt: this.clock + send.delayMs,
        expiresAt: send.expirationMs === 0 ? 0 : this.clock + send.expirationMs,
        maxReceiveCount: send.maxReceiveCount,
        deadLetterQueue: send.deadLetterQueue,
      })
      if (deduplicationId !== undefined) queue.sent.set(deduplicationId, { id, sequence, at: this.clock })
      return { id, sequence, duplicate: false }
    })
  }

  #place(queue: ModelQueue, message: Omit<ModelMessage, 'sequence' | 'receiveCount' | 'leased'>): number {
    queue.lastSequence += 1
    queue.incoming += 1
    queue.messages.push({ ...message, sequence: queue.lastSequence, receiveCount: 0, leased: false })
    return queue.lastSequence
  }

  /** What a receive would give, in order. */
  available(name: string): readonly ModelMessage[] {
    const { messages } = this.#queues.get(name) ?? { messages: [] }
    return messages.filter((message) => !message.leased && message.dueAt <= this.clock && !this.#expired(message))
  }

  receive(name: string, maxMessages: number): readonly ModelLease[] {
    const life = this.#queues.get(name)
    if (!life) return []
    return this.available(name)
      .slice(0, maxMessages)
      .map((message) => {
        message.leased = true
        message.receiveCount += 1
        life.outgoing += 1
        return { queue: name, life, message }
      })
  }

  isHeld({ queue, life, message }: ModelLease): boolean {
    return this.#queues.get(queue) === life && message.leased
  }

  ack({ life, message }: ModelLease): void {
    message.leased = false
    life.messages = life.messages.filter((other) => other !== message)
  }

  /** A nack, or the end of a lease. What has expired is gone, whatever else would become of it (C2). */
  release({ life, message }: ModelLease, delayMs = 0): void {
    message.leased = false
    if (this.#expired(message)) return
    const { id, maxReceiveCount, deadLetterQueue, receiveCount } = message
    if (maxReceiveCount === 0 || deadLetterQueue === '' || receiveCount < maxReceiveCount) {
      if (delayMs > 0) message.dueAt = this.clock + delayMs
      return
    }
    life.messages = life.messages.filter((other) => other !== message)
    life.deadLettered += 1
    this.#place(this.#queue(deadLetterQueue), {
      id,
      dueAt: this.clock,
      expiresAt: 0,
      maxReceiveCount: 0,
      deadLetterQueue: '',
    })
  }

  /** The fewest and the most that a purge may remove: expired messages may be gone already, or not. */
  purge(name: string): { readonly least: number; readonly most: number } {
    const queue = this.#queues.get(name)
    if (!queue) return { least: 0, most: 0 }
    const removed = queue.messages.filter((message) => !message.leased)
    queue.messages = queue.messages.filter((message) => message.leased)
    return { least: removed.filter((message) => !this.#expired(message)).length, most: removed.length }
  }

  delete(name: string): boolean {
    return this.#queues.delete(name)
  }

  /** How many messages become due when the clock moves on by so much. */
  maturing(name: string, milliseconds: number): number {
    const { messages } = this.#queues.get(name) ?? { messages: [] }
    return messages.filter(({ dueAt }) => dueAt > this.clock && dueAt <= this.clock + milliseconds).length
  }

  /** What the engine must tell of the queue. Expired messages may be counted out already, or not. */
  state(name: string) {
    const queue = this.#queues.get(name)
    if (!queue) return undefined
    const resting = queue.messages.filter((message) => !message.leased)
    return {
      incoming: queue.incoming,
      outgoing: queue.outgoing,
      deadLettered: queue.deadLettered,
      inFlight: queue.messages.length - resting.length,
      leastResting: resting.filter((message) => !this.#expired(message)).length,
      mostResting: resting.length,
    }
  }
}
