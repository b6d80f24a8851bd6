import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

import type { Engine, QueueDelivery } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'

import type { ModelLease, QueueModel } from './queue-model.ts'

/** An engine whose wall clock stands still unless it is moved. */
export class Store {
  readonly #path: string
  #engine: Engine | undefined
  clock = 1_800_000_000_000

  private constructor(path: string) {
    this.#path = path
  }

  static async open(): Promise<Store> {
    const store = new Store(await mkdtemp(join(tmpdir(), 'signalbox-model-')))
    await store.restart()
    return store
  }

  get engine(): Engine {
    return this.#engine ?? assert.fail('the engine is open')
  }

  async restart(): Promise<void> {
    await this.#engine?.close()
    this.#engine = await openEmbeddedEngine({ path: this.#path, now: () => this.clock })
  }

  async close(): Promise<void> {
    await this.engine.close()
    await rm(this.#path, { recursive: true, force: true })
  }
}

export interface HeldLease {
  readonly model: ModelLease
  readonly receipt: string
  readonly clientId: string
  /** The name of the call that ended the lease, which may be repeated. */
  endedBy?: string
}

export interface PendingReceive {
  readonly queue: string
  readonly abort: AbortController
  readonly outcome: Promise<readonly QueueDelivery[] | 'ended'>
}

const CLIENTS = ['ann', 'ben'] as const

/** One run: a model, and what corresponds to it in the engine, under names of the run's own. */
export class Session {
  readonly #store: Store
  readonly #run = randomUUID()
  readonly leases: HeldLease[] = []
  readonly waiting: PendingReceive[] = []

  constructor(store: Store) {
    this.#store = store
  }

  get engine(): Engine {
    return this.#store.engine
  }

  channel(queue: string): string {
    return queue === '' ? '' : `${queue}-${this.#run}`
  }

  clientOf(index: number): string {
    return CLIENTS[index % CLIENTS.length] ?? CLIENTS[0]
  }

  receive(queue: string, maxMessages: number, clientId: string): Promise<readonly QueueDelivery[]> {
    return this.engine.queues.receive(this.channel(queue), { maxMessages, waitMs: 0, leaseMs: 600_000, clientId })
  }

  /** A receive that waits, served by what a later command brings. */
  wait(queue: string, clientId: string): void {
    const abort = new AbortController()
    const outcome = this.engine.queues
      .receive(this.channel(queue), {
        maxMessages: 1,
        waitMs: 600_000,
        leaseMs: 600_000,
        clientId,
        signal: abort.signal,
      })
      .catch(() => 'ended' as const)
    this.waiting.push({ queue, abort, outcome })
  }

  /** Aborts the waits at some queues. */
  async endWaits(concerns: (queue: string) => boolean): Promise<void> {
    for (const pending of this.waiting.filter(({ queue }) => concerns(queue))) {
      this.waiting.splice(this.waiting.indexOf(pending), 1)
      pending.abort.abort(new Error('gone'))
      assert.equal(await pending.outcome, 'ended')
    }
  }

  /** Compares deliveries with what the model says, and remembers their leases. */
  delivered(expected: readonly ModelLease[], deliveries: readonly QueueDelivery[], clientId: string): void {
    assert.deepEqual(
      deliveries.map(({ message }) => [message.id, message.sequence, message.receiveCount, message.expiresAt]),
      expected.map(({ message }) => [message.id, message.sequence, message.receiveCount, message.expiresAt]),
    )
    for (const [i, model] of expected.entries()) {
      const { receipt } = deliveries[i] ?? assert.fail()
      this.leases.push({ model, receipt, clientId })
    }
  }

  /** Whether this delivery, and not an earlier one of the same message, is the one that holds it. */
  isLive(model: QueueModel, lease: HeldLease): boolean {
    const last = this.leases.findLast((other) => other.model.message === lease.model.message)
    return last === lease && model.isHeld(lease.model)
  }

  /** After every command: who waits gets what there is, and the engine’s figures are the model’s. */
  async settle(model: QueueModel, queues: readonly string[]): Promise<void> {
    for (let i = 0; i < this.waiting.length;) {
      const pending = this.waiting[i] ?? assert.fail()
      const expected = model.receive(pending.queue, 1)
      if (expected.length === 0) {
        i += 1
        continue
      }
      this.waiting.splice(i, 1)
      const outcome = await Promise.race([pending.outcome, pause(2_000, 'late' as const, { ref: false })])
      assert.ok(outcome !== 'late' && outcome !== 'ended', `who waits at ${pending.queue} is served`)
      this.delivered(expected, outcome, this.clientOf(0))
    }
    for (const queue of queues) {
      const expected = model.state(queue)
      await this.eventually(async () => {
        const state = await this.engine.channels.info('queues', this.channel(queue))
        if (!expected || !state?.queue) return assert.equal(state?.queue, expected)
        const { waiting, delayed, inFlight, deadLettered } = state.queue
        assert.deepEqual(
          { incoming: state.incoming, outgoing: state.outgoing, deadLettered, inFlight },
          {
            incoming: expected.incoming,
            outgoing: expected.outgoing,
            deadLettered: expected.deadLettered,
            inFlight: expected.inFlight,
          },
        )
        const resting = waiting + delayed
        assert.ok(
          resting >= expected.leastResting && resting <= expected.mostResting,
          `${queue} holds ${resting}, not ${expected.leastResting} to ${expected.mostResting}`,
        )
      })
    }
  }

  /** The end of a lease comes by a timer: what follows from it is awaited. */
  async eventually(assertion: () => Promise<void>): Promise<void> {
    const end = performance.now() + 2_000
    for (;;) {
      try {
        return await assertion()
      } catch (error) {
        if (performance.now() > end) throw error
      }
      await pause(1)
    }
  }

  /** Moves the wall clock on; where somebody waits, until the engine has noticed. */
  async advance(model: QueueModel, milliseconds: number): Promise<void> {
    this.#store.clock += milliseconds
    model.clock = this.#store.clock
    if (this.waiting.length > 0) await this.wakeUp(model)
  }

  /** The engine sleeps until the next message is due, by a clock that stood still: a new message wakes it. */
  async wakeUp(model: QueueModel): Promise<void> {
    const poke = this.channel('poke')
    const id = randomUUID()
    const message = { id, clientId: 'poke', body: new Uint8Array(0), metadata: '', tags: {} }
    const options = { delayMs: 1, expirationMs: 0, maxReceiveCount: 0, deadLetterQueue: '' }
    await this.engine.queues.send(poke, { ...message, ...options })
    this.#store.clock += 1
    model.clock = this.#store.clock
    const wanted = { maxMessages: 1, waitMs: 10_000, leaseMs: 600_000, clientId: 'poke' }
    const [delivery] = await this.engine.queues.receive(poke, wanted)
    assert.equal(delivery?.message.id, id)
    await this.engine.queues.ack([delivery?.receipt ?? ''], 'poke')
  }

  /** Closes the engine and opens it again: waits end, and leases end as by a nack. */
  async restart(model: QueueModel): Promise<void> {
    await this.#store.restart()
    for (const { outcome } of this.waiting.splice(0)) {
      const ended = await outcome
      assert.ok(ended === 'ended' || ended.length === 0, 'a wait that the engine ended got nothing')
    }
    const held = this.leases.filter((lease) => this.isLive(model, lease))
    for (const leases of Map.groupBy(held, (lease) => lease.model.queue).values()) {
      for (const lease of leases) model.release(lease.model)
    }
    // Nobody knows whether the messages of earlier receipts are acknowledged.
    this.leases.length = 0
  }
}
